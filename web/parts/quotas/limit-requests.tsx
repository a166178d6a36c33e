// Requests for more of a limit: the open ones and the running raises, with the buttons of the people who decide.
import { Box, Group, Modal, NumberInput, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { GrantLimitRequest, LimitRequest } from "../../api/types.ts";
import { Confirm } from "../editing/confirm.tsx";
import { problemOf } from "../editing/field-problem.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/notified-change.ts";
import { useQuestion } from "../editing/question.ts";
import { numberOf, type TypedNumber } from "../editing/typed-number.ts";
import { useLast } from "../editing/use-last.ts";
import { ShowMore, SmallButton } from "../page/buttons.tsx";
import { Failure } from "../page/failure.tsx";
import { Section } from "../page/section.tsx";
import { Ago } from "../words/ago.tsx";
import { at, count, money } from "../words/figures.ts";
import { SmallNote } from "../words/note.tsx";
import { nameOfQuota } from "../words/quotas.ts";

interface LimitRequestsProps {
  /** The API path of the requests. */
  path: "/v1/limit-requests" | "/v1/admin/limit-requests";
  /** True if the user decides about the request. */
  mayDecide?(request: LimitRequest): boolean;
}

/** Renders nothing without open requests and raises, as in most accounts. */
export function LimitRequests({ path, mayDecide = () => false }: LimitRequestsProps) {
  const open = useList<LimitRequest>(path, { limit: 100, status: "open" }, { everyMs: 15_000 });
  const granted = useList<LimitRequest>(path, { limit: 100, status: "granted" }, { everyMs: 15_000 });
  const error = open.error ?? granted.error;
  const [granting, setGranting] = useState<LimitRequest>();
  const shown = useLast(granting);
  const refusal = useQuestion(({ id }: LimitRequest) => call("POST", `${path}/${id}/refuse`, { body: {} }), {
    stale: [path],
    said: (_answer, { status, person }) =>
      status === "open" ? `The request of ${person.email} was refused.` : `The raise of ${person.email} has ended.`,
  });
  const current = [...open.items, ...granted.items.filter(({ status }) => status === "granted")];
  if (error && current.length === 0) return <Failure error={error} />;
  if (current.length === 0) return null;
  const isOpen = refusal.about?.status === "open";
  return (
    <Section title="Requests for more">
      <Stack gap="sm" component="ul" m={0} p={0} style={{ listStyle: "none" }}>
        {current.map((request) => (
          <li key={request.id}>
            <Group justify="space-between" gap="xs" align="flex-start">
              <Box flex="1 1 16rem" style={{ overflowWrap: "anywhere" }}>
                <Text size="sm">
                  {request.person.email}: {wantedText(request)}
                  {request.owner === "account" && ", of the account"}
                </Text>
                <SmallNote>
                  {request.status === "granted" ? (
                    `Raised until ${at(request.decision?.until ?? 0)}`
                  ) : (
                    <>
                      Asked <Ago seconds={request.created_at} />
                    </>
                  )}{" "}
                  · {request.reason}
                </SmallNote>
              </Box>
              {mayDecide(request) && (
                <Group gap="xs">
                  {request.status === "open" && (
                    <SmallButton onClick={() => setGranting(request)} aria-label={`Grant ${request.person.email} more`}>
                      Grant
                    </SmallButton>
                  )}
                  <SmallButton onClick={() => refusal.ask(request)} aria-label={refuseLabel(request)}>
                    {request.status === "open" ? "Refuse" : "End now"}
                  </SmallButton>
                </Group>
              )}
            </Group>
          </li>
        ))}
      </Stack>
      <ShowMore listing={open} />
      <Modal opened={granting !== undefined} onClose={() => setGranting(undefined)} title="Raise the limit for a time">
        {shown && <GrantForm request={shown} path={path} close={() => setGranting(undefined)} />}
      </Modal>
      <Confirm
        {...refusal.dialog}
        title={isOpen ? "Refuse the request?" : "End the raise now?"}
        action={isOpen ? "Refuse" : "End now"}
      >
        {isOpen
          ? `${refusal.about?.person.email} is notified and can ask again.`
          : "The limit is as before from the next request on."}
      </Confirm>
    </Section>
  );
}

const spans = [
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "1 week"],
  ["2592000", "30 days"],
].map(([value = "", label = ""]) => ({ value, label }));

function GrantForm({ request, path, close }: { request: LimitRequest; path: string; close(): void }) {
  const [amount, setAmount] = useState<TypedNumber>(request.amount ?? "");
  const [seconds, setSeconds] = useState("86400");
  const grant = useNotifiedChange(
    (body: GrantLimitRequest) => call<LimitRequest>("POST", `${path}/${request.id}/grant`, { body }),
    {
      stale: [path],
      said: ({ person, decision }) => `${person.email} has more until ${at(decision?.until ?? 0)}.`,
      done: close,
    },
  );
  const { unit, person } = request;
  return (
    <Form
      sending={grant}
      fields={["amount"]}
      action="Grant"
      submit={() => grant.mutate({ amount: numberOf(amount) ?? 0, seconds: Number(seconds) })}
      cancel={close}
      noValidate
    >
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {person.email}: {nameOfRequest(request)}. {request.reason}
      </Text>
      <NumberInput
        label={unit === "usd" ? "Additional amount, USD" : `Additional ${unit}`}
        value={amount}
        onChange={setAmount}
        min={0}
        allowDecimal={unit === "usd"}
        error={problemOf(grant.error, "amount")}
        data-autofocus
      />
      <Select
        label="For"
        description="Then the limit is as before."
        data={spans}
        value={seconds}
        onChange={(value) => setSeconds(value ?? seconds)}
        allowDeselect={false}
      />
    </Form>
  );
}

function wantedText(request: LimitRequest): string {
  const amount = request.decision?.amount ?? request.amount;
  const more = amount === null ? "more" : `${request.unit === "usd" ? money(amount) : count(amount)} more`;
  return `${more}, ${nameOfRequest(request)}`;
}

function nameOfRequest({ unit, per, window, models, tag }: LimitRequest): string {
  return nameOfQuota({ unit, per, window, models: models ?? null, tag: tag ?? null });
}

function refuseLabel({ status, person }: LimitRequest): string {
  return status === "open" ? `Refuse the request of ${person.email}` : `End the raise of ${person.email}`;
}
