// A copy button that confirms, alone or with the text as a block of code.
import { ActionIcon, Button, Code, Group } from "@mantine/core";
import { CheckIcon, CopyIcon } from "@primer/octicons-react";
import { useRef } from "react";
import { SmallNote } from "../words/note.tsx";
import { useCopying } from "./clipboard.ts";

interface CopyProps {
  value: string;
  /** The button's name for screen readers: "Copy the key". */
  label: string;
}

const wrapped = { whiteSpace: "pre-wrap", overflowWrap: "anywhere" } as const;

export function CopyAction({ value, label }: CopyProps) {
  const { state, copy } = useCopying(value);
  const said = { ready: label, copied: "Copied", failed: "Not copied: select the text instead" }[state];
  return (
    <ActionIcon
      variant="subtle"
      color={state === "copied" ? "green" : "gray"}
      onClick={(event) => void copy(event.currentTarget)}
      aria-label={label}
      data-hint={said}
    >
      {state === "copied" ? <CheckIcon /> : <CopyIcon />}
    </ActionIcon>
  );
}

interface CopyBlockProps extends CopyProps {
  /** If true, a long line wraps instead of scrolling. */
  wrap?: boolean;
}

/** A block of code or a secret with a copy button. If copying fails, the text is selected. */
export function CopyBlock({ value, label, wrap = false }: CopyBlockProps) {
  const { state, copy } = useCopying(value);
  const text = useRef<HTMLElement>(null);
  const copyOrSelect = async (near: HTMLElement) => {
    if ((await copy(near)) || !text.current) return;
    text.current.focus();
    window.getSelection()?.selectAllChildren(text.current);
  };
  const isCopied = state === "copied";
  return (
    <div>
      <Code ref={text} block tabIndex={0} aria-label={label} mah="24rem" style={wrap ? wrapped : {}}>
        {value}
      </Code>
      <Group justify="end" mt={6} gap="xs">
        {state === "failed" && (
          <SmallNote>
            The browser does not allow this page to copy. The text is selected: press Ctrl+C, or ⌘C on a Mac.
          </SmallNote>
        )}
        <Button
          variant={isCopied ? "light" : "default"}
          size="xs"
          leftSection={isCopied ? <CheckIcon /> : <CopyIcon />}
          onClick={(event) => void copyOrSelect(event.currentTarget)}
        >
          {isCopied ? "Copied" : label}
        </Button>
      </Group>
    </div>
  );
}
