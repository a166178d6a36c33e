// A document that does not change until the next start. It is compressed once for each coding. Clients that already
// have it get status 304.
import type { HeaderLines } from "../../http1/message.ts";
import type { PlainAnswer } from "../exchange/route.ts";
import { type Coding, codingFor, codings, encoded, withVary } from "./content-coding.ts";
import { isSameTag, weakTagOf } from "./entity-tag.ts";

export class StaticDocument {
  readonly #bytes: Uint8Array;
  readonly #type: string;
  readonly #tag: string;
  readonly #forms = new Map<Coding, Promise<Uint8Array>>();

  constructor(text: string, type: string) {
    this.#bytes = Buffer.from(text);
    this.#type = type;
    // The tag is weak, because it must be the same for every content coding.
    this.#tag = weakTagOf(this.#bytes);
  }

  async answer(headers: Pick<HeaderLines, "get">): Promise<PlainAnswer> {
    const coding = codingFor(headers.get("accept-encoding"), codings);
    const own = withVary({ "cache-control": "no-cache", etag: this.#tag });
    if (isSameTag(headers.get("if-none-match"), this.#tag)) return { status: 304, headers: own, body: "" };
    const typed = { ...own, "content-type": this.#type };
    if (coding === undefined) return { status: 200, headers: typed, body: this.#bytes };
    return { status: 200, headers: { ...typed, "content-encoding": coding }, body: await this.#form(coding) };
  }

  #form(coding: Coding): Promise<Uint8Array> {
    const known = this.#forms.get(coding);
    if (known) return known;
    const form = encoded(this.#bytes, coding, "thorough");
    this.#forms.set(coding, form);
    return form;
  }
}
