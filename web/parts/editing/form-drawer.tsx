// A drawer that shows something and lets it be changed: it closes only after a question once something was typed.
import { Drawer } from "@mantine/core";
import type { ReactNode } from "react";
import { useDiscarding } from "./discarding.tsx";
import { useLast } from "./use-last.ts";

interface FormDrawerProps<Shown> {
  /** What it shows, also while it closes; null or undefined where it is closed. */
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
