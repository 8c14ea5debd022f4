// Light or dark: the preference of the system until the reader chooses one.

const KEY = "pi-export-theme";
const CHOICES = ["auto", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];

const SIGNS: Record<Choice, string> = { auto: "\u25d0 auto", light: "\u2600 light", dark: "\u263e dark" };

export function switchable(target: HTMLButtonElement): void {
  let choice = CHOICES.find((one) => one === remembered()) ?? "auto";
  const apply = (): void => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    target.textContent = SIGNS[choice];
  };
  target.addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "auto";
    apply();
    remember(choice);
  });
  apply();
}

/** Pages opened as files may have no storage. */
function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(choice: Choice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
