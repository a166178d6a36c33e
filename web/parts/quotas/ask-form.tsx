// The form of a request for more of a quota.
import { NumberInput, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { AccountOverview, CreateLimitRequest, LimitRequest } from "../../api/types.ts";
import { problemOf } from "../editing/field-problem.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/notified-change.ts";
import { numberOf, type TypedNumber } from "../editing/typed-number.ts";

type UsedQuota = AccountOverview["quotas"][number];

const fields = ["amount", "reason"] as const;

export function AskForm({ quota, close }: { quota: UsedQuota; close(): void }) {
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
