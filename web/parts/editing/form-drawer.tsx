// A drawer with a form: it asks before edited text is discarded.
import { Drawer } from "@mantine/core";
import type { ReactNode } from "react";
import { useDiscarding } from "./discarding.tsx";
import { useLast } from "./use-last.ts";

interface FormDrawerProps<Shown> {
  /** The record on display, also while the drawer closes; null or undefined if the drawer is closed. */
  of: Shown | null | undefined;
  title(shown: Shown): string;
  size?: "lg" | "32rem";
  children(shown: Shown): ReactNode;
  close(): void;
}

export function FormDrawer<Shown extends string | object>(props: FormDrawerProps<Shown>) {
  const { of, title, size, children, close } = props;
  const shown = useLast(of);
  const { leave, guarded } = useDiscarding();
  return (
    <Drawer
      opened={of !== null && of !== undefined}
      onClose={() => leave(close)}
      position="right"
      {...(size ? { size } : {})}
      title={shown === undefined ? "" : title(shown)}
    >
      {guarded(shown !== undefined && children(shown))}
    </Drawer>
  );
}
