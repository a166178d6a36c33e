// A dialog with a long form: as large as the screen on a phone, and not left by a click beside what was written.
import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";

interface FormDialogProps {
  opened: boolean;
  title: string;
  children: ReactNode;
  close(): void;
}

export function FormDialog({ opened, title, children, close }: FormDialogProps) {
  const isNarrow = useMediaQuery("(max-width: 36em)");
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={title}
      size="44rem"
      fullScreen={isNarrow ?? false}
      closeOnClickOutside={false}
    >
      {children}
    </Modal>
  );
}
