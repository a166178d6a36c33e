// Stores data of a browser tab across reloads, until the user signs out or closes the tab.

let isOver = false;
const signOuts = new BroadcastChannel("headrace-sign-out");

/** Stores `text`; undefined removes the entry. If storage is full or disabled, nothing is stored and nothing thrown. */
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

/** Clears the tab's data before a sign-out and notifies other tabs. Later writes of the page are ignored. */
export function forgetTab(): void {
  isOver = true;
  signOuts.postMessage("");
  try {
    sessionStorage.clear();
  } catch {}
}

/** Calls `listener` when the user signs out in another tab; returns a function that unsubscribes. */
export function onSignOut(listener: () => void): () => void {
  signOuts.addEventListener("message", listener);
  return () => signOuts.removeEventListener("message", listener);
}
