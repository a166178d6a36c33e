// A search field that reports its text when the user pauses.
import { TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

const pauseMs = 300;

interface SearchFieldProps
  extends Pick<TextInputProps, "label" | "aria-label" | "placeholder" | "leftSection" | "size" | "w" | "maxLength"> {
  value: string;
  change(text: string): void;
  /** Removes parts of the typed text. */
  cleaned?: (text: string) => string;
}

export function SearchField({ value, change, cleaned, ...props }: SearchFieldProps) {
  const [text, setText] = useState(value);
  // The text that was reported last. Another `value` comes from elsewhere, such as the menu, and replaces the text.
  const sent = useRef(value);
  const send = useDebouncedCallback((wanted: string) => {
    sent.current = wanted;
    change(wanted);
  }, pauseMs);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  return (
    <TextInput
      {...props}
      type="search"
      value={text}
      onChange={({ currentTarget: { value: typed } }) => {
        const written = cleaned ? cleaned(typed) : typed;
        setText(written);
        send(written.trim());
      }}
    />
  );
}
