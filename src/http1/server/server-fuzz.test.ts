// Valid requests are read alike for random splits. Random damage never crashes or hangs the server, and never makes
// more requests than were sent.
import { expect, test } from "bun:test";
import { echo, get, post, startTestServer, until } from "../../../tests/support/http1/server-fixture.ts";

/** Returns a source of random integers below `below`: the same ones for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const chunkedBody = "4;ext=1\r\nab\r\n\r\n1\r\n.\r\n0\r\nX-Trailer: 1\r\n\r\n";
const requests = [
  get("/1", ["X: y"]),
  post("/2", "two"),
  `POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunkedBody}`,
  post("/4", ""),
  get("/5?q=%20"),
  post("/6", get("/not-a-request").repeat(20)),
  post("/7", "\r\n\r\n"),
  get("/8", ["Connection: close"]),
];
const wanted = [
  "GET /1 ",
  "POST /2 two",
  "POST /3 ab\r\n.",
  "POST /4 ",
  "GET /5?q=%20 ",
  `POST /6 ${get("/not-a-request").repeat(20)}`,
  "POST /7 \r\n\r\n",
  "GET /8 ",
];

test("reads requests alike, however they are cut", async () => {
  await using it = startTestServer(echo);
  const below = random(7);
  const bytes = requests.join("");
  await Promise.all(
    Array.from({ length: 36 }, async (_, run) => {
      const connection = await it.open();
      const size = [1 + below(3), 1 + below(40), 1 + below(600)][run % 3] as number;
      for (let at = 0; at < bytes.length; at += size) {
        connection.socket.write(bytes.slice(at, at + size));
        if (run % 4 !== 3) await Bun.sleep(0);
      }
      const { answers, closed } = await connection.ended();
      expect(answers.map((answer) => answer.body)).toEqual(wanted);
      expect(closed).toBe(true);
    }),
  );
  expect(it.faults).toEqual([]);
  expect(it.server.pendingRequests).toBe(0);
});

// hardening: F14
test("survives damaged requests, and reads no more requests than were sent", async () => {
  await using it = startTestServer(echo, { headMs: 150, bodyIdleMs: 150, idleMs: 150, lingerMs: 150 });
  const below = random(11);
  const pieces = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    ":",
    "0",
    "f",
    ",",
    "\xff",
    "chunked",
    "Content-Length: 3\r\n",
    "\r\n\r\n",
  ];
  const damage = (bytes: string) => {
    let text = bytes;
    for (let n = 1 + below(3); n > 0; n--) {
      const at = below(text.length);
      const piece = below(2) === 0 ? (pieces[below(pieces.length)] as string) : String.fromCharCode(below(256));
      const kind = below(3);
      if (kind === 0) text = text.slice(0, at) + piece + text.slice(at);
      else if (kind === 1) text = text.slice(0, at) + piece + text.slice(at + piece.length);
      else text = text.slice(0, at) + text.slice(at + 1 + below(4));
    }
    return text;
  };
  // Request 5 is left out: its body looks like requests, which would count if damage shortens its length.
  const plain = requests.filter((_request, index) => index !== 5).join("");
  for (let round = 0; round < 2; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const text = damage(plain);
        const connection = await it.open();
        await connection.write(Buffer.from(text, "latin1"));
        const { answers, closed } = await connection.ended(3_000);
        // All request lines that a strict parser could find. One more answer may refuse what is no request.
        const lines = text.match(/[A-Za-z0-9!#$%&'*+.^_`|~-]+ \S+ HTTP\/1\.[01]\r\n/g) ?? [];
        const served = answers.filter((answer) => answer.status === 200);
        expect([closed, served.length <= lines.length, answers.length <= lines.length + 1]).toEqual([true, true, true]);
        // Nothing follows a refusal.
        const refusal = answers.findIndex((answer) => answer.status !== 200);
        if (refusal >= 0) expect(refusal).toBe(answers.length - 1);
        connection.socket.destroy();
      }),
    );
  }
  await until(() => it.server.pendingRequests === 0, "none is left over");
  expect(it.faults).toEqual([]);
});

test("survives random bytes", async () => {
  await using it = startTestServer(echo, { headMs: 100, idleMs: 100, lingerMs: 100 });
  const below = random(13);
  await Promise.all(
    Array.from({ length: 150 }, async () => {
      const connection = await it.open();
      const noise = Buffer.from(Array.from({ length: 1 + below(400) }, () => below(256)));
      await connection.write(noise);
      expect((await connection.ended(3_000)).closed).toBe(true);
      connection.socket.destroy();
    }),
  );
  expect(it.requests).toHaveLength(0);
  expect(it.faults).toEqual([]);
});
