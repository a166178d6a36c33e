// A dialog with a form that makes something with a secret, and then with the secret, which is shown this once.
import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";

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
  /** The form is long: on a phone it has the screen, and no click beside it throws away what was written. */
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
  return (
    <Modal
      opened={opened}
      onClose={leave}
      onExitTransitionEnd={making.reset}
      title={isMade ? titleOf(made) : title}
      {...(isWide ? { size: "44rem", fullScreen: isNarrow && (isLong || isMade) } : {})}
      closeOnClickOutside={!(isLong || isMade)}
      closeOnEscape={!isMade}
      withCloseButton={!isMade}
    >
      {isMade ? children(made, leave) : form(leave)}
    </Modal>
  );
}
