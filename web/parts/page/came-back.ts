// Tells whether the browser's back or forward button led to this page, whose scroll position is then restored.

let address: string | undefined;

// This file is loaded before the router. Listeners run in order of registration and React renders between two of them,
// so the flag is set when a page renders. The second event is the router's, for each page that a link opens.
window.addEventListener("popstate", () => {
  address = addressHere();
});
window.addEventListener("pushState", () => {
  address = undefined;
});

export function cameBack(): boolean {
  return address === addressHere();
}

export function addressHere(): string {
  const { pathname, search } = window.location;
  return pathname + search;
}
