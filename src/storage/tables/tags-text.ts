// Converts the tags of a request to and from the text in its record's column: a JSON array. Tags have no character that
// JSON escapes.

export function tagsText(tags: readonly string[]): string {
  return JSON.stringify(tags);
}

export function readTags(text: string | null): readonly string[] | undefined {
  return text === null ? undefined : (JSON.parse(text) as string[]);
}

/** Returns the substring of the column that occurs exactly if the request has this tag. */
export function tagInText(tag: string): string {
  return JSON.stringify(tag);
}
