// What a client named, in a message to it: however long that was, the message is not.

export function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
