// Whether the browser's buttons led here: they lead to where somebody was, a link to the beginning.

let address: string | undefined;

// Loaded before the router, so that this is known when a page is drawn: a window calls its listeners in their order, and
// React draws between two of them. The second event is the router's, of each page that is opened by a link.
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
