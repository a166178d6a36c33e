// The forms of our pages, read as a browser does that fills them in.

/** What is hidden in the form of the page that leads to `action`; of several such, the one that `which` counts to. */
export function hiddenFields(page: string, action: string, which = 0): Record<string, string> {
  const forms = [...page.matchAll(/<form [^>]*action="([^"]*)"[^>]*>(.*?)<\/form>/gs)];
  const form = forms.filter(([, found = ""]) => unescaped(found) === action)[which]?.[2];
  if (form === undefined) throw new Error(`The page has no such form to ${action}.`);
  const hidden = [...form.matchAll(/<input type="hidden"[^>]* name="([^"]*)" value="([^"]*)">/g)];
  return Object.fromEntries(hidden.map(([, name = "", value = ""]) => [unescaped(name), unescaped(value)]));
}

function unescaped(text: string): string {
  return text
    .replace(/&quot;/g, '"')
    .replace(/&#x27;/g, "'")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&");
}
