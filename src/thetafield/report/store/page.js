// Without this script the page is whole; with it, tables can be sorted and commands copied.
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0], original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button || original.filter((row) => row.cells[column]?.dataset.value).length < 2) return;
    button.disabled = false;
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort];
      for (const other of heads) if (other.ariaSort) other.ariaSort = "none";
      head.ariaSort = next;
      const parts = original.filter((row) => row.classList.contains("part"));
      for (const part of parts) part.hidden = next !== "none";  // sorted rows belong to no part
      if (next === "none") return body.append(...original);
      const rows = original.filter((row) => !row.classList.contains("part"));
      const value = (row) => row.cells[column].dataset.value;
      const sign = next === "ascending" ? 1 : -1;
      // Cells without a number stay at the end whichever way the others go.
      rows.sort((a, b) => (value(a) === undefined) - (value(b) === undefined) || sign * (value(a) - value(b)) || 0);
      body.append(...parts, ...rows);
    });
  });
}
for (const link of document.querySelectorAll("sup a")) {
  link.addEventListener("click", () => {
    const notes = document.getElementById(link.hash.slice(1))?.closest("details");
    if (notes) notes.open = true;
  });
}
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {  // a page from the disk may not be allowed to
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
      getSelection().removeAllRanges();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}
