// A drawer that shows something and lets it be changed: a click beside it closes it, but throws no form away.
import { Drawer } from "@mantine/core";
import { type ReactNode, useRef } from "react";
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
  const content = useRef<HTMLDivElement>(null);
  return (
    <Drawer
      opened={of !== null && of !== undefined}
      onClose={close}
      position="right"
      {...(size ? { size } : {})}
      title={shown === undefined ? "" : title(shown)}
      closeOnClickOutside={false}
      overlayProps={{
        onClick() {
          if (!content.current?.querySelector("form")) close();
        },
      }}
    >
      <div ref={content}>{shown !== undefined && children(shown)}</div>
    </Drawer>
  );
}
