// Makes typing in a search field replace the chosen text instead of extending it.
import type { SyntheticEvent } from "react";

function selectAll({ currentTarget }: SyntheticEvent<HTMLInputElement>): void {
  currentTarget.select();
}

/** A click selects the text as well, because the browser places its cursor after the focus event. */
export const replaceOnTyping = { onFocus: selectAll, onClick: selectAll } as const;
