// A dialog with a form that makes something with a secret, and then with the secret, which is shown this once.
import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";
import { useDiscarding } from "../editing/discarding.tsx";

interface MakingDialogProps<Made> {
  opened: boolean;
  close(): void;
  /** The change that makes it. */
  making: { data: Made | undefined; isPending: boolean; reset(): void };
  title: string;
  titleOf(made: Made): string;
  /** `leave` closes the dialog, unless it is made at this moment. */
  form(leave: () => void): ReactNode;
  /** What was made. */
  children(made: Made, leave: () => void): ReactNode;
  /** Wider than other dialogs, and as large as the screen on a phone once something is made. */
  isWide?: boolean;
  /** The form is long: on a phone it has the screen, and its buttons stay in view. */
  isLong?: boolean;
}

export function MakingDialog<Made>(props: MakingDialogProps<Made>) {
  const { opened, close, making, title, titleOf, form, children, isLong = false, isWide = isLong } = props;
  const isNarrow = useMediaQuery("(max-width: 36em)") ?? false;
  const made = making.data;
  const isMade = made !== undefined;
  const leave = () => {
    // Whoever left while it is made would never see the secret.
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
