// Secondary text in a muted color.
import { Text, type TextProps } from "@mantine/core";
import type { ComponentProps } from "react";

interface NoteProps extends TextProps, Omit<ComponentProps<"p">, keyof TextProps> {}

export function Note(props: NoteProps) {
  return <Text size="sm" c="dimmed" {...props} />;
}

export function SmallNote(props: NoteProps) {
  return <Text size="xs" c="dimmed" {...props} />;
}
