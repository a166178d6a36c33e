// A dialog with a form that creates a secret and then shows it once.
import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";
import { useDiscarding } from "../editing/discarding.tsx";

interface MakingDialogProps<Made> {
  opened: boolean;
  close(): void;
  /** The change that creates the secret. */
  making: { data: Made | undefined; isPending: boolean; reset(): void };
  title: string;
  titleOf(made: Made): string;
  /** `leave` closes the dialog, unless the request is running. */
  form(leave: () => void): ReactNode;
  /** Renders the created object with its secret. */
  children(made: Made, leave: () => void): ReactNode;
  /** If true, the dialog is wide, and full screen on a phone once the secret is shown. */
  isWide?: boolean;
  /** If true, the form is full screen on a phone, with its buttons in view. */
  isLong?: boolean;
}

export function MakingDialog<Made>(props: MakingDialogProps<Made>) {
  const { opened, close, making, title, titleOf, form, children, isLong = false, isWide = isLong } = props;
  const isNarrow = useMediaQuery("(max-width: 36em)") ?? false;
  const made = making.data;
  const isMade = made !== undefined;
  const leave = () => {
    // Closing during the request would lose the secret.
    if (!making.isPending) close();
  };
  const discarding = useDiscarding();
  return (
    <Modal
      opened={opened}
      onClose={() => {
        if (!making.isPending) discarding.leave(leave);
      }}
      onExitTransitionEnd={making.reset}
      title={isMade ? titleOf(made) : title}
      {...(isWide ? { size: "44rem", fullScreen: isNarrow && (isLong || isMade) } : {})}
      {...(isLong ? { className: "long-form" } : {})}
      closeOnClickOutside={!isMade}
      closeOnEscape={!isMade}
      withCloseButton={!isMade}
    >
      {discarding.guarded(isMade ? children(made, leave) : form(leave))}
    </Modal>
  );
}
