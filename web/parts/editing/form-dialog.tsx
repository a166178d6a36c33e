// A dialog with a long form: full screen on a phone, with a question before edited text is discarded.
import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";
import { useDiscarding } from "./discarding.tsx";

interface FormDialogProps {
  opened: boolean;
  title: string;
  children: ReactNode;
  close(): void;
}

export function FormDialog({ opened, title, children, close }: FormDialogProps) {
  const isNarrow = useMediaQuery("(max-width: 36em)");
  const { leave, guarded } = useDiscarding();
  return (
    <Modal
      opened={opened}
      onClose={() => leave(close)}
      title={title}
      size="44rem"
      fullScreen={isNarrow ?? false}
      className="long-form"
    >
      {guarded(children)}
    </Modal>
  );
}
