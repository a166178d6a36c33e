// The tags of a request as the column of its record has them: a JSON array. No tag has a character that JSON escapes.

export function tagsText(tags: readonly string[]): string {
  return JSON.stringify(tags);
}

export function readTags(text: string | null): readonly string[] | undefined {
  return text === null ? undefined : (JSON.parse(text) as string[]);
}

/** What the text has in it where it has this tag, and only then. */
export function tagInText(tag: string): string {
  return JSON.stringify(tag);
}
