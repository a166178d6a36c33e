// Tells whether the browser's back or forward button led to this page, whose scroll position is then restored.

let address: string | undefined;

// This file is loaded before the router, so these listeners run first: React renders the page between two listeners,
// and must find the address set. The router sends `pushState` for each page that a link opens.
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
