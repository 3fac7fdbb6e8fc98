// Sets what pymdownx.arithmatex left: \( … \) in a span, \[ … \] in a div.
document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const source = element.textContent.trim()
    katex.render(source.slice(2, -2), element, { displayMode: source.startsWith("\\["), throwOnError: true })
  }
})
