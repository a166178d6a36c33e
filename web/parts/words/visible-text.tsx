// Text from a server, with its invisible characters shown by name.
import { seenOf } from "./hidden-characters.ts";

export function VisibleText({ children }: { children: string }) {
  return seenOf(children).map(({ text, isHidden }, at) =>
    isHidden ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the same text has the same pieces
      <span key={at} className="hidden-character">
        {text}
      </span>
    ) : (
      text
    ),
  );
}

export function hidesSomething(text: string): boolean {
  return seenOf(text).some(({ isHidden }) => isHidden);
}
