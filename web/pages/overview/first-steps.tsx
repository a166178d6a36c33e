// Shown before the first request: three steps that lead to it, and a notice when it arrives.
import { Alert, Button, Group, Loader, Paper, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { CheckCircleIcon, CheckIcon } from "@primer/octicons-react";
import { type ReactNode, useEffect, useRef } from "react";
import { chatModel } from "../../api/models.ts";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKeyList, ModelList, RequestList } from "../../api/types.ts";
import { LinkButton, PlainLinkButton, TextLink } from "../../parts/page/links.tsx";
import { Page } from "../../parts/page/page.tsx";
import { baseUrlHere, Snippets } from "../../parts/secrets/snippets.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { counted } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { useEverUsed } from "./overview-data.ts";

const everyMs = 2_000;

export function FirstSteps({ done }: { done(): void }) {
  const { isOperator } = useSession();
  const models = useRead<ModelList>("/v1/models", {}, { everyMs: 10_000 });
  const keys = useRead<ApiKeyList>("/v1/keys", { limit: 1 });
  const used = useEverUsed(everyMs);
  const hasFailed = (used.data?.errors ?? 0) > 0;
  const hasSucceeded = used.data !== undefined && used.data.requests > used.data.errors;
  const model = models.data && chatModel(models.data)?.id;
  const hasNoModel = models.data !== undefined && model === undefined;
  if (hasSucceeded) return <Succeeded done={done} />;
  return (
    <Page title="Overview" about="Make your first call in three steps. This page updates when the call arrives.">
      <Stack gap="md" maw="52rem">
        <Paper withBorder p="md" role="status">
          {hasFailed ? (
            <FailedCall />
          ) : (
            <Group gap="sm" wrap="nowrap">
              <Loader size="sm" />
              <Text size="sm">Waiting for the first call…</Text>
            </Group>
          )}
        </Paper>
        {hasNoModel && (
          <Alert color="yellow" title="No models yet">
            {isOperator ? (
              <>
                Start a model server on this machine, which Headrace finds automatically, or{" "}
                <TextLink href="/admin/upstreams">add an upstream</TextLink>.
              </>
            ) : (
              "Ask an operator of this server to add a model."
            )}
          </Alert>
        )}
        <Step
          number={1}
          title="Create an API key"
          action={<LinkButton href="/settings/api-keys?create=1">Create a key</LinkButton>}
        >
          Your program sends the key with each request. You see the key only once, so store it safely.
          {(keys.data?.data.length ?? 0) > 0 && " Already have a key? Skip this step."}
        </Step>
        <Step number={2} title="Make a call">
          <Text size="sm" mb="xs" component="div">
            Set the environment variable OPENAI_API_KEY to your key, then run one of these examples.
          </Text>
          <Snippets
            baseUrl={baseUrlHere()}
            model={model ?? "MODEL"}
            messages={[{ role: "user", content: "Who are you?" }]}
            parameters={{ temperature: 0 }}
          />
        </Step>
        <Step
          number={3}
          title="Or try a model here first"
          action={<PlainLinkButton href="/playground">Open the playground</PlainLinkButton>}
        >
          Chat with {model ?? "a model"} in the browser, without a key. You can copy the conversation as code.
        </Step>
      </Stack>
    </Page>
  );
}

interface StepProps {
  number: number;
  title: string;
  children: ReactNode;
  action?: ReactNode;
}

function Step({ number, title, children, action }: StepProps) {
  return (
    <Paper withBorder p="md" component="article" aria-label={`Step ${number}: ${title}`}>
      <Group align="start" wrap="nowrap" gap="md">
        <ThemeIcon radius="xl" variant="light" size={30} aria-hidden="true">
          <Text fw={700} size="sm">
            {number}
          </Text>
        </ThemeIcon>
        <Stack gap="xs" flex={1} miw={0}>
          <Title order={2} fz="md" lh="30px">
            {title}
          </Title>
          <Text size="sm" component="div">
            {children}
          </Text>
          {action && <div>{action}</div>}
        </Stack>
      </Group>
    </Paper>
  );
}

function useLastRequest() {
  return useRead<RequestList>("/v1/requests", { limit: 1 }, { everyMs }).data?.data[0];
}

function FailedCall() {
  const last = useLastRequest();
  return (
    <Text size="sm">
      A call arrived, but it failed{last?.error_code ? ` (${last.error_code})` : ""}.{" "}
      <TextLink href={last ? `/requests/${last.id}` : "/requests"}>See what happened</TextLink>, then try again. This
      page keeps waiting.
    </Text>
  );
}

function Succeeded({ done }: { done(): void }) {
  const last = useLastRequest();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <Page title="Overview">
      <Paper withBorder p="xl" maw="52rem" role="status">
        <Stack align="center" gap="sm" ta="center">
          <ThemeIcon size={56} radius="xl" color="green" variant="light" aria-hidden="true">
            <CheckIcon size={28} />
          </ThemeIcon>
          <Title order={2} ref={heading} tabIndex={-1} style={{ outline: "none" }}>
            The first call worked
          </Title>
          <Note>
            {last ? (
              <>
                {last.model} answered with {counted(last.total_tokens, "token")} , <Ago seconds={last.at} />.
              </>
            ) : (
              "The model answered."
            )}{" "}
            This page will now show the activity of the account.
          </Note>
          <Group justify="center">
            <Button onClick={done} leftSection={<CheckCircleIcon />}>
              Go to Overview
            </Button>
            {last && <PlainLinkButton href={`/requests/${last.id}`}>See it in Logs</PlainLinkButton>}
          </Group>
        </Stack>
      </Paper>
    </Page>
  );
}
