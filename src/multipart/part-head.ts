// Parses the headers of a part of a form: its name, and its filename if the part is a file (RFC 7578, 4.2).
import { invalidRequest } from "../base/errors.ts";

export interface PartHead {
  readonly name: string;
  /** Filename of the part. Undefined if the part is a text. */
  readonly filename: string | undefined;
  readonly contentType: string | undefined;
  /** True if the text is in ISO 8859-1, which is the default of Apache HttpClient. Otherwise the text is in UTF-8. */
  readonly isLatin1: boolean;
}

/**
 * Matches one parameter of `Content-Disposition`. With the flag `y`, each match must begin where the last one ended.
 */
const parameter = /;[ \t]*([\w!#$&+.^`|~*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";\\]+))[ \t]*/y;
/**
 * Matches anything that some parser may take for a parameter with a name, because it ignores quotes or follows RFC
 * 2231.
 */
const naming = /;[^\w;]*name[^a-z;=]*=/gi;
/**
 * Matches names that all parsers understand in the same way. From other names, some parsers remove blanks, `<>` or `%`.
 */
const plainName = /^[\w.[\]-]+$/;
const fieldName = /^[\w!#$%&'*+.^`|~-]+$/;
/** Transfer encodings that leave the bytes unchanged. Not every server supports the others. */
const plainEncodings: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);
const [utf8, latin1] = [/^(?:utf-?8|us-ascii)$/i, /^(?:iso-8859-1|latin1)$/i];

/** Parses the header lines of a part. Throws `invalid_request`. */
export function readPartHead(text: string): PartHead {
  const fields = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (!fieldName.test(name) || hasControl(value)) throw badHead("one of its headers is none");
    if (fields.has(name)) throw badHead("one of its headers appears twice");
    fields.set(name, value);
  }
  const encoding = fields.get("content-transfer-encoding");
  if (encoding !== undefined && !plainEncodings.has(encoding.toLowerCase())) {
    throw badHead("its Content-Transfer-Encoding is not binary; send its bytes as they are");
  }
  const disposition = fields.get("content-disposition");
  if (disposition === undefined) throw badHead("it has no header Content-Disposition");
  const contentType = fields.get("content-type");
  const head = named(disposition);
  const charset = head.filename === undefined ? charsetOf(contentType ?? "") : "utf-8";
  const isLatin1 = latin1.test(charset);
  if (!isLatin1 && !utf8.test(charset)) throw badHead("its Content-Type says another charset than UTF-8");
  return { ...head, contentType, isLatin1 };
}

function charsetOf(contentType: string): string {
  return /;[ \t]*charset[^=]*=[ \t"]*([^" \t;]*)/i.exec(contentType)?.[1] ?? "utf-8";
}

function named(disposition: string): Pick<PartHead, "name" | "filename"> {
  const kind = /^form-data[ \t]*/i.exec(disposition)?.[0];
  if (kind === undefined) throw badHead("its Content-Disposition is not form-data");
  const parameters = new Map<string, string>();
  parameter.lastIndex = kind.length;
  while (parameter.lastIndex < disposition.length) {
    const found = parameter.exec(disposition);
    if (!found) throw badHead("its Content-Disposition cannot be read");
    const [, name = "", quoted, token] = found;
    if (parameters.has(name.toLowerCase())) throw badHead(`its Content-Disposition has ${name.toLowerCase()} twice`);
    parameters.set(name.toLowerCase(), quoted ?? token ?? "");
  }
  const name = parameters.get("name");
  if (name === undefined || name === "") throw badHead("it has no name");
  if (!plainName.test(name) || disposition.match(naming)?.length !== 1) {
    throw badHead("its name is written in a way that servers differ in; send letters, digits, _, -, . and [] alone");
  }
  return { name, filename: parameters.get("filename") ?? extended(parameters.get("filename*")) };
}

/** Decodes a value in UTF-8 in the form of RFC 8187. Returns any other value unchanged. */
function extended(value: string | undefined): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(value ?? "")?.[1];
  if (encoded === undefined) return value;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return value;
  }
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return true;
  }
  return false;
}

function badHead(why: string) {
  return invalidRequest(`A part of the form cannot be used: ${why}.`);
}
