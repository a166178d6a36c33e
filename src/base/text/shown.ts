// What a request sent, as a message shows it again: of bounded length.

/** The text, cut where it has more characters than that. */
export function shown(text: string, most = 100): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
