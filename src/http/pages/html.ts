// HTML templates. Every value is escaped, unless it is an Html object.

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value in a template. `false`, null and undefined render nothing, so that `condition && html…` works. */
export type HtmlValue = Html | string | number | false | null | undefined | readonly HtmlValue[];

/** Renders a template. Values are only safe in text and in quoted attributes. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = strings[0] ?? "";
  for (const [i, value] of values.entries()) text += rendered(value) + (strings[i + 1] ?? "");
  return new Html(text);
}

function rendered(value: HtmlValue): string {
  if (value instanceof Html) return value.text;
  if (value === false || value === null || value === undefined) return "";
  if (typeof value === "object") return value.map(rendered).join("");
  return Bun.escapeHTML(String(value));
}
