// A field that is searched by typing: what is typed takes the place of what was chosen, rather than being added to it.
import type { SyntheticEvent } from "react";

function selectAll({ currentTarget }: SyntheticEvent<HTMLInputElement>): void {
  currentTarget.select();
}

/** By a click as well: the browser puts its cursor into the text behind the focus. */
export const replaceOnTyping = { onFocus: selectAll, onClick: selectAll } as const;
