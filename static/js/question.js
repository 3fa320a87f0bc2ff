// A question in place of the page: what was on the screen is hidden until it is
// answered, so that nobody reads it meanwhile and the focus stays here.

export class Question {
  constructor(element) {
    this.element = element;
    this.title = element.querySelector("#question-title");
    this.text = element.querySelector("#question-text");
    this.actions = element.querySelector("#question-actions");
    this.name = null;
    this.hidden = [];
    element.addEventListener("keydown", ({ key }) => key === "Escape" && this.cancel());
  }

  // The first button of [{label, run}] changes nothing; Escape presses it, too.
  ask({ name, title, text, buttons }) {
    if (!this.name) this.hidePage();
    this.name = name;
    this.title.textContent = title;
    this.text.textContent = text;
    this.actions.textContent = "";
    this.actions.append(...buttons.map((button) => this.button(button)));
    this.element.hidden = false;
    const [first] = this.actions.children;
    first.classList.add("primary");
    first.focus();
  }

  button({ label, run }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      this.close();
      run();
    });
    return button;
  }

  cancel() {
    this.actions.querySelector("button").click();
  }

  close(name = this.name) {
    if (!this.name || this.name !== name) return;
    this.name = null;
    this.element.hidden = true;
    for (const element of this.hidden) element.hidden = false;
    this.hidden = [];
    scrollTo(0, this.scrolledTo);
    this.focused?.focus({ preventScroll: true });
  }

  hidePage() {
    this.focused = document.activeElement;
    this.scrolledTo = scrollY;
    const others = [...document.body.children].filter((other) => other !== this.element);
    this.hidden = others.filter((other) => !other.hidden);
    for (const element of this.hidden) element.hidden = true;
  }
}
