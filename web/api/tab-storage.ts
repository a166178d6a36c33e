// What a tab of the browser keeps over a reload, until somebody signs out in it or it is closed.

let isOver = false;

/** Undefined removes it. Where there is no room, or storage is switched off, it is kept until the page is left. */
export function keepInTab(name: string, text: string | undefined): void {
  if (isOver) return;
  try {
    if (text === undefined) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  } catch {}
}

export function keptInTab(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Before somebody signs out: what the page would still keep as it is left is nobody's any more. */
export function forgetTab(): void {
  isOver = true;
  try {
    sessionStorage.clear();
  } catch {}
}
