// What a person finds on a page to act on: its links, and its forms with their fields and buttons.

export interface Button {
  /** The name that is read out: `aria-label`, else its text. */
  label: string;
  /** Sent when it is the one that is pressed. */
  field: readonly [name: string, value: string] | undefined;
}

export interface Form {
  /** The address that stands in the page; undefined: the page's own. */
  action: string | undefined;
  method: "get" | "post";
  /** What is sent where nobody changes anything. */
  values: Map<string, string>;
  /** Those that nobody sees, and so nobody fills in. */
  hidden: Set<string>;
  /** Those that a browser does not send empty. */
  required: Set<string>;
  /** All that has a name, the hidden ones apart. */
  visible: Set<string>;
  buttons: Button[];
}

export interface PageParts {
  forms: readonly Form[];
  links: readonly { label: string; href: string }[];
  /** Where the page sends its reader on to by itself. */
  refresh: string | undefined;
}

type Attributes = ReadonlyMap<string, string>;

/** A tag, or the text up to the next. */
const piece = /<(\/?)([a-z][a-z0-9]*)((?:\s+[a-zA-Z:-]+(?:="[^"]*")?)*)\s*>|[^<]+|</g;
const attribute = /([a-zA-Z:-]+)(?:="([^"]*)")?/g;
/** What is known by the text in it. */
const labelled: ReadonlySet<string> = new Set(["a", "button", "option"]);

/** Takes a page apart that quotes all attributes and closes what has a label. */
export function partsOf(page: string): PageParts {
  const forms: Form[] = [];
  const links: { label: string; href: string }[] = [];
  let refresh: string | undefined;
  let form: Form | undefined;
  let select = "";
  let text = "";
  let opened: Attributes = new Map();

  const begin = (name: string, attributes: Attributes): void => {
    if (labelled.has(name)) [opened, text] = [attributes, ""];
    switch (name) {
      case "form":
        form = emptyForm(attributes);
        forms.push(form);
        break;
      case "input":
        if (form) addInput(form, attributes);
        break;
      case "select":
        select = attributes.get("name") ?? "";
        form?.visible.add(select);
        break;
      case "meta":
        if (attributes.get("http-equiv") === "refresh")
          refresh = attributes.get("content")?.replace(/^\d+;\s*url=/, "");
    }
  };
  const end = (name: string): void => {
    const shown = unescaped(text).replace(/\s+/g, " ").trim();
    const label = opened.get("aria-label") ?? shown;
    if (name === "form") form = undefined;
    if (name === "a") links.push({ label, href: opened.get("href") ?? "" });
    if (name === "button") form?.buttons.push({ label, field: fieldOf(opened) });
    // The first stands until another is chosen, which is how browsers have it.
    if (name === "option" && (opened.has("selected") || !form?.values.has(select))) {
      form?.values.set(select, opened.get("value") ?? shown);
    }
  };
  for (const [whole, slash, name = "", attributes = ""] of page.matchAll(piece)) {
    if (name === "") text += whole;
    else if (slash === "/") end(name);
    else begin(name, attributesOf(attributes));
  }
  return { forms, links, refresh };
}

/** What is hidden in the form of the page that leads to `action`; of several such, the one that `which` counts to. */
export function hiddenFields(page: string, action: string, which = 0): Record<string, string> {
  const form = partsOf(page).forms.filter((one) => one.action === action)[which];
  if (!form) throw new Error(`The page has no such form to ${action}.`);
  return hiddenIn(form);
}

export function hiddenIn({ values, hidden }: Form): Record<string, string> {
  return Object.fromEntries([...values].filter(([name]) => hidden.has(name)));
}

function attributesOf(text: string): Attributes {
  return new Map([...text.matchAll(attribute)].map(([, name = "", value = ""]) => [name, unescaped(value)]));
}

function emptyForm(attributes: Attributes): Form {
  return {
    action: attributes.get("action"),
    method: attributes.get("method") === "post" ? "post" : "get",
    values: new Map(),
    hidden: new Set(),
    required: new Set(),
    visible: new Set(),
    buttons: [],
  };
}

function addInput(form: Form, attributes: Attributes): void {
  const field = fieldOf(attributes);
  if (field === undefined) return;
  const [name, value] = field;
  const type = attributes.get("type");
  (type === "hidden" ? form.hidden : form.visible).add(name);
  if (attributes.has("required")) form.required.add(name);
  const isChoice = type === "radio" || type === "checkbox";
  if (!isChoice || attributes.has("checked")) form.values.set(name, value);
}

function fieldOf(attributes: Attributes): [name: string, value: string] | undefined {
  const name = attributes.get("name") ?? "";
  return name === "" ? undefined : [name, attributes.get("value") ?? ""];
}

function unescaped(text: string): string {
  const characters = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#39;": "'" };
  return text.replace(/&(?:amp|lt|gt|quot|#x27|#39);/g, (entity) => characters[entity as keyof typeof characters]);
}
