// Caches the JSON of model names. Every request and answer in which the gateway changes the name needs one of the same
// few names.

/** JSON of the names of served models and of their upstream models. Names change while the gateway runs. */
const encoded = new Map<string, Buffer>();
const maxEncoded = 8_192;

/** Returns the name as JSON in UTF-8, including the quotes. The caller must not change the bytes. */
export function modelNameJson(name: string): Buffer {
  let found = encoded.get(name);
  if (found === undefined) {
    found = Buffer.from(JSON.stringify(name));
    if (encoded.size >= maxEncoded) encoded.clear();
    encoded.set(name, found);
  }
  return found;
}
