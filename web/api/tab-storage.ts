// What a tab of the browser keeps over a reload, until somebody signs out in it or it is closed.

let isOver = false;
const signOuts = new BroadcastChannel("headrace-sign-out");

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

/** Before somebody signs out: what the page would still keep as it is left is nobody's any more. Other tabs hear of it. */
export function forgetTab(): void {
  isOver = true;
  signOuts.postMessage("");
  try {
    sessionStorage.clear();
  } catch {}
}

/** Calls `listener` once somebody signs out in another tab; gives what ends that. */
export function onSignOut(listener: () => void): () => void {
  signOuts.addEventListener("message", listener);
  return () => signOuts.removeEventListener("message", listener);
}
