// Shows the join command, whose token is visible only this once, and waits until the machine has joined.
import { Alert, Button, Code, Group, Loader, Stack, Text } from "@mantine/core";
import { AlertIcon, CheckCircleIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { useList } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import type { CreatedNodeJoinToken, Node, NodeJoinToken } from "../../api/types.ts";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { shellWord } from "../../parts/secrets/snippet-text.ts";
import { at } from "../../parts/words/figures.ts";
import { modelCount, waitsForApproval } from "./node-state.tsx";
import { nodesPath, tokensPath } from "./use-node-change.ts";

const askedEveryMs = 2_000;

interface JoinCommandProps {
  created: CreatedNodeJoinToken;
  /** Creates another token. */
  again(): void;
  close(): void;
  show(id: string): void;
}

export function JoinCommand({ created, again, close, show }: JoinCommandProps) {
  const { step, node } = useJoining(created);
  if (node && step === "connected") return <Joined node={node} close={close} show={show} />;
  return (
    <FirstButton>
      {step === "waiting" && <Command token={created.token} />}
      <div aria-live="polite">
        <Progress step={step} node={node} expiresAt={created.expires_at} />
      </div>
      <Group justify="end">
        {isOver(step) && <Button onClick={again}>Create another command</Button>}
        <PlainButton onClick={close}>{isOver(step) ? "Close" : "Done"}</PlainButton>
      </Group>
    </FirstButton>
  );
}

/** The copy button has the focus, so that a stray Enter does not close the dialog. */
function FirstButton({ children }: { children: ReactNode }) {
  return <Stack ref={useFirstButton()}>{children}</Stack>;
}

function Command({ token }: { token: string }) {
  const { origin, hostname } = window.location;
  return (
    <>
      <Alert color="yellow" icon={<AlertIcon />} title="Copy the command now">
        You see it only once. Anyone with this command can add one machine, so handle it like a password.
      </Alert>
      <Text size="sm">
        Run this command on the machine that should join. The machine needs Node.js. The command keeps running and
        serves the models that it finds. After a restart of the machine, run <Code>npx headrace serve</Code> to connect
        again.
      </Text>
      <CopyBlock
        value={`npx headrace node join ${shellWord(origin)} --token ${shellWord(token)}`}
        label="Copy the command"
        wrap
      />
      {isThisMachine(hostname) && (
        <Alert icon={<AlertIcon />} color="yellow">
          <Code>{hostname}</Code> always means the machine that runs the command. For another machine, replace it with
          an address at which that machine reaches this server.
        </Alert>
      )}
    </>
  );
}

/** `ended` means that the token was withdrawn, or that the joined node was removed. */
type Step = "waiting" | "joined" | "connected" | "expired" | "ended";

function isOver(step: Step): boolean {
  return step === "expired" || step === "ended";
}

function useJoining({ id, expires_at: expiresAt }: CreatedNodeJoinToken): { step: Step; node: Node | undefined } {
  const tokens = useList<NodeJoinToken>(tokensPath, {}, { everyMs: askedEveryMs });
  const token = tokens.items.find((one) => one.id === id);
  const known = useLast(token);
  const nodeId = token?.node_id ?? null;
  // The node is taken from the list and remembered: another replica may answer, and not know the new node yet.
  const nodes = useList<Node>(nodesPath, {}, { enabled: nodeId !== null, everyMs: askedEveryMs });
  const node = useLast(nodes.items.find((one) => one.id === nodeId));
  return { step: stepOf(), node };

  function stepOf(): Step {
    const isTaken = token?.status === "used";
    if ((known && !token) || (isTaken && nodeId === null)) return "ended";
    if (nodeId !== null) return node && node.status !== "offline" ? "connected" : "joined";
    return token?.status === "expired" || expiresAt <= nowSeconds() ? "expired" : "waiting";
  }
}

function Progress({ step, node, expiresAt }: { step: Step; node: Node | undefined; expiresAt: number }) {
  if (isOver(step)) {
    return (
      <Alert icon={<AlertIcon />} color="red" title="The command no longer works">
        {step === "expired"
          ? "No machine joined in time."
          : "Its token was revoked, or the node that used it was removed."}
      </Alert>
    );
  }
  if (step === "waiting") {
    return (
      <Waiting>
        Waiting for the machine to join… The command works once, until {at(expiresAt)}. You can close this dialog in the
        meantime.
      </Waiting>
    );
  }
  return <Waiting>{node?.name ?? "The machine"} has joined. Waiting for its connection…</Waiting>;
}

function Joined({ node, close, show }: { node: Node; close(): void; show(id: string): void }) {
  const { name, client_address: address, announced_models: announced } = node;
  const models = announced.length === 0 ? "no models yet" : modelCount(announced.length);
  return (
    <FirstButton>
      <Alert icon={<CheckCircleIcon />} color="green" title={`${name} has joined`} role="status">
        The node is connected{address === null ? "" : ` from ${address}`} and announces {models}.
        {waitsForApproval(node) && " It receives no requests until you choose its models."}
      </Alert>
      <Group justify="end">
        <PlainButton onClick={close}>Done</PlainButton>
        <Button onClick={() => show(node.id)}>{waitsForApproval(node) ? "Choose models" : "Show the node"}</Button>
      </Group>
    </FirstButton>
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
