// Names of models as JSON: every request and answer that changes them needs the same few.

/** Those that are served, and what upstreams call them. They change while the server runs. */
const encoded = new Map<string, Buffer>();
const maxEncoded = 8_192;

/** The UTF-8 of the name as JSON, with its quotes; it must not be changed. */
export function modelNameJson(name: string): Buffer {
  let found = encoded.get(name);
  if (found === undefined) {
    found = Buffer.from(JSON.stringify(name));
    if (encoded.size >= maxEncoded) encoded.clear();
    encoded.set(name, found);
  }
  return found;
}
