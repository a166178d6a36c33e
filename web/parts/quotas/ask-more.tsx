// The button by which a person asks for more of a quota. Its form is loaded when it is first opened.
import { Modal } from "@mantine/core";
import { useState } from "react";
import type { AccountOverview } from "../../api/types.ts";
import { SmallButton } from "../page/buttons.tsx";
import { useLater } from "../page/later.ts";
import { nameOfQuota } from "../words/quotas.ts";

const load = async () => (await import("./ask-form.tsx")).AskForm;

export function AskMore({ quota }: { quota: AccountOverview["quotas"][number] }) {
  const [opened, setOpened] = useState(false);
  const { part: AskForm, failure } = useLater(opened ? load : undefined);
  if (failure) throw failure.error;
  const close = () => setOpened(false);
  return (
    <>
      <SmallButton mt={4} onClick={() => setOpened(true)} aria-label={`Request more: ${nameOfQuota(quota)}`}>
        Request more
      </SmallButton>
      <Modal opened={opened} onClose={close} title={`Request more: ${nameOfQuota(quota)}`}>
        {AskForm && <AskForm quota={quota} close={close} />}
      </Modal>
    </>
  );
}
