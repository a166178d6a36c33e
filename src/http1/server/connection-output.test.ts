// Bytes that a slow client's socket does not accept at once are sent later, all of them and in order.
import { expect, test } from "bun:test";
import { BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { ConnectionOutput } from "./connection-output.ts";
import { scratch } from "./outgoing.ts";
import { gatheredBytes } from "./turn-output.ts";

/** Returns a socket that accepts `room` bytes. */
function slowSocket() {
  const it = {
    room: 0,
    text: "",
    write(bytes: Buffer, offset: number, length: number) {
      if (it.room < 0) return -1;
      const taken = Math.min(length, it.room);
      it.room -= taken;
      it.text += bytes.toString("latin1", offset, offset + taken);
      return taken;
    },
  };
  return it;
}

test("sends kept bytes before later writes, even if the socket has room again", () => {
  const socket = slowSocket();
  const output = new ConnectionOutput(socket, new BufferedBytes(1_000_000).visitors);
  socket.room = 3;
  expect(output.writeCopied(Buffer.from("abcde"))).toBe(false);
  expect(output.behind).toBe(true);
  socket.room = 100;
  expect(output.writeCopied(Buffer.from("fg"))).toBe(false);
  output.keep(Buffer.from("xxhxx"), 2, 3);
  expect([socket.text, output.unsentBytes]).toEqual(["abc", 5]);
  socket.room = 3;
  expect(output.flush()).toBe(3);
  expect(output.behind).toBe(true);
  socket.room = 100;
  expect(output.flush()).toBe(2);
  expect([socket.text, output.behind, output.unsentBytes]).toEqual(["abcdefgh", false, 0]);
  expect(output.writeCopied(Buffer.from("i"))).toBe(true);
});

test.each([
  ["heads", scratch],
  ["pieces", gatheredBytes],
])("copies kept bytes out of the shared buffer of %s", (_, shared) => {
  const socket = slowSocket();
  const output = new ConnectionOutput(socket, new BufferedBytes(1_000_000).visitors);
  // At the buffer's end: its beginning belongs to the code that wrote there.
  const start = shared.length - 5;
  shared.write("first", start, "latin1");
  output.keep(shared, start, shared.length);
  shared.write("other", start, "latin1");
  socket.room = 100;
  output.flush();
  expect(socket.text).toBe("first");
});

test("holds nothing for a closed socket", () => {
  const socket = slowSocket();
  const output = new ConnectionOutput(socket, new BufferedBytes(1_000_000).visitors);
  output.writeCopied(Buffer.from("abc"));
  socket.room = -1;
  expect(output.flush()).toBe(0);
  expect(output.behind).toBe(false);
  expect(output.writeCopied(Buffer.from("abc"))).toBe(true);
  expect(output.behind).toBe(false);
});
