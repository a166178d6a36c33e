// Shortens text from a request so that a message can show it.

/** Returns the text, cut after `most` characters. */
export function shown(text: string, most = 100): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
