// Light, dark, or as the system has it; the choice is remembered where the browser lets a page remember.

const ORDER = { auto: "light", light: "dark", dark: "auto" };
const NAMES = { auto: "Colours: system", light: "Colours: light", dark: "Colours: dark" };

export function makeTheme(button, changed) {
  let choice = recall();
  const apply = () => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    button.textContent = NAMES[choice];
    changed();
  };
  button.addEventListener("click", () => {
    choice = ORDER[choice];
    try {
      localStorage.setItem("thetafield-theme", choice);
    } catch {
      // A page opened from a file may have no memory: the choice holds until it is closed.
    }
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply();
}

function recall() {
  try {
    const kept = localStorage.getItem("thetafield-theme");
    return kept in NAMES ? kept : "auto";
  } catch {
    return "auto";
  }
}
