// A drawer that shows something and lets it be changed: a click beside it closes it, but throws no form away.
import { Drawer } from "@mantine/core";
import { type ReactNode, useRef } from "react";

interface FormDrawerProps {
  opened: boolean;
  title: string;
  size?: "lg";
  children: ReactNode;
  close(): void;
}

export function FormDrawer({ opened, title, size, children, close }: FormDrawerProps) {
  const content = useRef<HTMLDivElement>(null);
  return (
    <Drawer
      opened={opened}
      onClose={close}
      position="right"
      {...(size ? { size } : {})}
      title={title}
      closeOnClickOutside={false}
      overlayProps={{
        onClick() {
          if (!content.current?.querySelector("form")) close();
        },
      }}
    >
      <div ref={content}>{children}</div>
    </Drawer>
  );
}
