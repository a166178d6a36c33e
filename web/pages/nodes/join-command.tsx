// The command with which a machine joins, the only time that its token is shown, and the wait until it has.
import { Alert, Button, Code, Group, Loader, Stack, Text } from "@mantine/core";
import { AlertIcon, CheckCircleIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { useList, useRead } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { Ago } from "../../parts/ago.tsx";
import { CopyBlock } from "../../parts/copy.tsx";
import { CopyNow } from "../../parts/copy-now.tsx";
import { shellWord } from "../../parts/snippet-text.ts";
import { useFirstButton } from "../../parts/use-first-button.ts";
import { useLast } from "../../parts/use-last.ts";
import { modelCount } from "./node-state.tsx";
import type { CreatedNodeJoinToken, Node, NodeJoinToken } from "./node-types.ts";
import { nodePath, tokensPath } from "./use-node-change.ts";

const askedEveryMs = 2_000;

interface JoinCommandProps {
  created: CreatedNodeJoinToken;
  /** Makes another token. */
  again(): void;
  close(): void;
  show(id: string): void;
}

export function JoinCommand({ created, again, close, show }: JoinCommandProps) {
  // What copies comes first; nobody ends this by one Enter too many.
  const place = useFirstButton();
  const { origin, hostname } = window.location;
  const joining = useJoining(created);
  const { node } = joining;
  return (
    <Stack ref={place}>
      <CopyNow what="the command" />
      <Text size="sm">Paste it on the machine that is to join. It needs Node.js, and Headrace comes with it.</Text>
      <CopyBlock
        value={`npx headrace node join ${shellWord(origin)} --token ${shellWord(created.token)}`}
        label="Copy the command"
        wrap
      />
      {isThisMachine(hostname) && (
        <Alert icon={<AlertIcon />} color="yellow">
          <Code>{hostname}</Code> means the machine itself wherever the command is run. For another machine put the
          address in its place at which it reaches this one.
        </Alert>
      )}
      <div aria-live="polite">
        <Progress joining={joining} />
      </div>
      <Group justify="end">
        {(joining.step === "expired" || joining.step === "ended") && (
          <Button variant="default" onClick={again}>
            Make another
          </Button>
        )}
        {node ? (
          <>
            <Button variant="default" onClick={close}>
              Done
            </Button>
            <Button onClick={() => show(node.id)}>
              {node.status === "pending" ? "Choose what it serves" : "Show the node"}
            </Button>
          </>
        ) : (
          <Button variant="default" onClick={close}>
            Done
          </Button>
        )}
      </Group>
    </Stack>
  );
}

/** `ended`: somebody withdrew the token meanwhile, or removed the node that joined with it. */
interface Joining {
  step: "waiting" | "joined" | "connected" | "expired" | "ended";
  node: Node | undefined;
  expiresAt: number;
}

function useJoining({ id, expires_at: expiresAt }: CreatedNodeJoinToken): Joining {
  const tokens = useList<NodeJoinToken>(tokensPath, {}, { everyMs: askedEveryMs });
  const token = tokens.items.find((one) => one.id === id);
  const nodeId = token?.node_id ?? null;
  const { data: node } = useRead<Node>(nodePath(nodeId ?? ""), {}, { enabled: nodeId !== null, everyMs: askedEveryMs });
  const known = useLast(token);
  return { step: stepOf(), node, expiresAt };

  function stepOf(): Joining["step"] {
    if (nodeId !== null) return node && node.status !== "offline" ? "connected" : "joined";
    if (token?.status === "expired" || expiresAt <= nowSeconds()) return "expired";
    const isGone = known !== undefined && token === undefined;
    return isGone || token?.status === "used" ? "ended" : "waiting";
  }
}

function Progress({ joining: { step, node, expiresAt } }: { joining: Joining }) {
  if (step === "expired") {
    return (
      <Alert icon={<AlertIcon />} color="red" title="The command no longer works">
        No machine joined with it in time.
      </Alert>
    );
  }
  if (step === "ended") {
    return (
      <Alert icon={<AlertIcon />} color="red" title="The command no longer works">
        Its token was withdrawn, or the node that joined with it was removed.
      </Alert>
    );
  }
  if (step === "waiting") {
    return (
      <Waiting>
        Waiting for the machine to join… The command works until it has, and ends <Ago seconds={expiresAt} />. You may
        leave this dialog.
      </Waiting>
    );
  }
  if (!node || step === "joined") {
    return <Waiting>{node ? `${node.name} has joined.` : "It has joined."} Waiting for its connection…</Waiting>;
  }
  const models = node.announced_models.length;
  return (
    <Alert icon={<CheckCircleIcon />} color="green" title={`${node.name} has joined`}>
      It is connected{node.client_address === null ? "" : ` from ${node.client_address}`}
      {models === 0 ? " and announces no model yet." : ` and announces ${modelCount(models)}.`}
      {node.status === "pending" && " It gets no request before you choose what it may serve."}
    </Alert>
  );
}

function Waiting({ children }: { children: ReactNode }) {
  return (
    <Group gap="sm" wrap="nowrap" align="start">
      <Loader size="xs" mt={2} aria-hidden="true" />
      <Text size="sm">{children}</Text>
    </Group>
  );
}

function isThisMachine(hostname: string): boolean {
  return /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
