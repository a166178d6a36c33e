// The button by which a person asks for more of a quota, with its dialog.
import { Modal, NumberInput, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { AccountOverview, CreateLimitRequest, LimitRequest } from "../../api/types.ts";
import { problemOf } from "../editing/field-problem.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/notified-change.ts";
import { numberOf, type TypedNumber } from "../editing/typed-number.ts";
import { SmallButton } from "../page/buttons.tsx";
import { nameOfQuota } from "../words/quotas.ts";

type UsedQuota = AccountOverview["quotas"][number];

export function AskMore({ quota }: { quota: UsedQuota }) {
  const [opened, setOpened] = useState(false);
  const close = () => setOpened(false);
  return (
    <>
      <SmallButton mt={4} onClick={() => setOpened(true)} aria-label={`Request more: ${nameOfQuota(quota)}`}>
        Request more
      </SmallButton>
      <Modal opened={opened} onClose={close} title={`Request more: ${nameOfQuota(quota)}`}>
        <AskForm quota={quota} close={close} />
      </Modal>
    </>
  );
}

const fields = ["amount", "reason"] as const;

function AskForm({ quota, close }: { quota: UsedQuota; close(): void }) {
  const { owner, unit, per, window, models, tag, ask } = quota;
  const [amount, setAmount] = useState<TypedNumber>("");
  const [reason, setReason] = useState("");
  const asking = useNotifiedChange(
    (body: CreateLimitRequest) => call<LimitRequest>("POST", "/v1/limit-requests", { body }),
    { stale: ["/v1/limit-requests"], said: () => "Your request was sent.", done: close },
  );
  const send = () => {
    const which = { unit, per, window, ...(models && { models }), ...(tag !== null && { tag }) };
    const ofAccount = owner === "account" ? "account" : "member";
    asking.mutate({ ...which, owner: ofAccount, amount: numberOf(amount), reason: reason.trim() });
  };
  return (
    <Form sending={asking} fields={fields} action="Send request" submit={send} cancel={close} noValidate>
      <Text size="sm">The request goes to {ask}. If it is granted, your limit is raised for a time.</Text>
      <NumberInput
        label={unit === "usd" ? "Additional amount, USD" : `Additional ${unit}`}
        description="Optional"
        value={amount}
        onChange={setAmount}
        min={0}
        allowDecimal={unit === "usd"}
        error={problemOf(asking.error, "amount")}
      />
      <Textarea
        label="Reason"
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        maxLength={500}
        error={problemOf(asking.error, "reason")}
        data-autofocus
      />
    </Form>
  );
}
