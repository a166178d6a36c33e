// A dialog with a long form: as large as the screen on a phone, and not left by a click beside what was written.
import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";

interface FormDialogProps {
  opened: boolean;
  title: string;
  children: ReactNode;
  /** It shows a secret that nobody can show again: only a button within it leaves. */
  isLocked?: boolean;
  close(): void;
  /** Once it cannot be seen any more. */
  closed?: () => void;
}

export function FormDialog({ opened, title, children, isLocked = false, close, closed }: FormDialogProps) {
  const isNarrow = useMediaQuery("(max-width: 36em)");
  return (
    <Modal
      opened={opened}
      onClose={close}
      {...(closed ? { onExitTransitionEnd: closed } : {})}
      title={title}
      size="44rem"
      fullScreen={isNarrow ?? false}
      closeOnClickOutside={false}
      closeOnEscape={!isLocked}
      withCloseButton={!isLocked}
    >
      {children}
    </Modal>
  );
}
