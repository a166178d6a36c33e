// Caches the JSON of model names, because every request and answer that changes them needs the same few.

/** Names of served models and of their upstream models. Names change while the server runs. */
const encoded = new Map<string, Buffer>();
const maxEncoded = 8_192;

/** Returns the name as JSON in UTF-8, with its quotes. The caller must not change the bytes. */
export function modelNameJson(name: string): Buffer {
  let found = encoded.get(name);
  if (found === undefined) {
    found = Buffer.from(JSON.stringify(name));
    if (encoded.size >= maxEncoded) encoded.clear();
    encoded.set(name, found);
  }
  return found;
}
