// Real clients of OpenAI's API against a running server: the packages openai and ai.
//
//   ARENITE_URL=http://127.0.0.1:PORT ARENITE_MODEL=NAME ARENITE_EMBEDDER=NAME node --test .
//
// The model is small: what a reply says is its own, what a reply is, is the server's.
import assert from "node:assert/strict";
import {test} from "node:test";

import {createOpenAI} from "@ai-sdk/openai";
import {createOpenAICompatible} from "@ai-sdk/openai-compatible";
import * as ai from "ai";
import OpenAI, {APIUserAbortError, BadRequestError, NotFoundError} from "openai";
import {zodResponseFormat, zodTextFormat} from "openai/helpers/zod";
import {z} from "zod";

const URL = process.env.ARENITE_URL, MODEL = process.env.ARENITE_MODEL;
const EMBEDDER = process.env.ARENITE_EMBEDDER;
const client = new OpenAI({baseURL: URL + "/v1", apiKey: "none", maxRetries: 0});
const compatible = createOpenAICompatible({name: "arenite", baseURL: URL + "/v1",
  includeUsage: true, supportsStructuredOutputs: true});
const responses = createOpenAI({baseURL: URL + "/v1", apiKey: "none"});

const Mood = z.object({name: z.enum(["Mia", "Ben"]), isGlad: z.boolean()}).strict();
const FIND = {name: "find", description: "Finds a thing",
  parameters: {type: "object", properties: {what: {enum: ["cat", "dog"]}}, required: ["what"],
    additionalProperties: false}};
const user = (content) => [{role: "user", content}];

async function untilIdle() {
  for (let i = 0; i < 500; ++i) {
    const status = await (await fetch(URL + "/v1/status")).json();
    if (status.queue.waiting === 0 && !status.sequences.some((s) => s.busy)) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.fail("the server goes on with a stream that was aborted");
}

// ---- openai: chats

test("openai: models, a chat and its stream", async () => {
  assert.ok((await client.models.list()).data.some((model) => model.id === MODEL));
  assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
  const ask = {model: MODEL, messages: user("Tell me about a cat."), max_tokens: 20,
    temperature: 0};
  const whole = await client.chat.completions.create(ask);
  let text = "", usage = null;
  const stream = await client.chat.completions.create(
      {...ask, stream: true, stream_options: {include_usage: true}});
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.total_tokens, whole.usage.total_tokens);
});

test("openai: structured output by zod", async () => {
  const reply = await client.chat.completions.parse({model: MODEL, messages: user("Who?"),
    max_tokens: 100, response_format: zodResponseFormat(Mood, "mood")});
  Mood.parse(reply.choices[0].message.parsed);
});

test("openai: a loop of tools", async () => {
  const calls = [];
  const runner = client.chat.completions.runTools({model: MODEL, messages: user("Look!"),
    max_tokens: 200, parallel_tool_calls: false,
    tool_choice: {type: "function", function: {name: "find"}},
    tools: [{type: "function", function: {...FIND, parse: JSON.parse,
      function: ({what}) => { calls.push(what); return "Under the bed."; }}}]},
  {maxChatCompletions: 2});
  await runner.done();
  assert.ok(calls.length >= 1 && calls.every((what) => ["cat", "dog"].includes(what)), calls);
  assert.ok(runner.messages.some((m) => m.role === "tool" && m.content === "Under the bed."));
});

test("openai: an aborted stream ends its work", async () => {
  const stream = await client.chat.completions.create({model: MODEL, messages: user("Go on."),
    stream: true, ignore_eos: true});
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) stream.controller.abort();
  }
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(client.chat.completions.create(
      {model: MODEL, messages: user("Go on."), ignore_eos: true, n: 2},
      {signal: controller.signal}), APIUserAbortError);
  await untilIdle();
});

test("openai: mistakes name their field", async () => {
  await assert.rejects(client.chat.completions.create(
      {model: MODEL, messages: user("Hi"), temperature: 3}),
  (error) => error instanceof BadRequestError && error.param === "temperature");
  await assert.rejects(client.chat.completions.create({model: "other", messages: user("Hi")}),
      (error) => error instanceof NotFoundError && error.param === "model");
});

test("openai: embeddings", async () => {
  const ask = {model: EMBEDDER, input: ["A cat sat.", "A dog ran."]};
  const vectors = await client.embeddings.create(ask);  // base64, which the package decodes
  const floats = await client.embeddings.create({...ask, encoding_format: "float"});
  assert.equal(vectors.data.length, 2);
  for (const i of [0, 1]) {
    assert.ok(vectors.data[i].embedding.some((value) => value !== 0));
    floats.data[i].embedding.forEach((value, j) =>
      assert.ok(Math.abs(value - vectors.data[i].embedding[j]) < 1e-6));
  }
});

// ---- openai: responses

test("openai: a response and its stream", async () => {
  const ask = {model: MODEL, input: "Tell me about a cat.", instructions: "Be brief.",
    max_output_tokens: 20, temperature: 0};
  const whole = await client.responses.create(ask);
  let text = "";
  const stream = client.responses.stream(ask);
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  const last = await stream.finalResponse();
  assert.ok(whole.output_text.length > 0);
  assert.equal(text, whole.output_text);
  assert.equal(last.output_text, whole.output_text);
  assert.equal(last.usage.output_tokens, whole.usage.output_tokens);
});

test("openai: a response by zod", async () => {
  const reply = await client.responses.parse({model: MODEL, input: "Who?", max_output_tokens: 100,
    text: {format: zodTextFormat(Mood, "mood")}});
  Mood.parse(reply.output_parsed);
});

test("openai: a response with tools, and their output back", async () => {
  const tools = [{type: "function", strict: true, ...FIND}];
  const input = user("Look!");
  const first = await client.responses.create({model: MODEL, input, tools, max_output_tokens: 200,
    tool_choice: "required", parallel_tool_calls: false});
  const call = first.output.find((item) => item.type === "function_call");
  assert.ok(["cat", "dog"].includes(JSON.parse(call.arguments).what));
  const second = await client.responses.create({model: MODEL, tools, max_output_tokens: 8,
    tool_choice: "none", input: [...input, ...first.output,
      {type: "function_call_output", call_id: call.call_id, output: "Under the bed."}]});
  assert.equal(second.output.at(-1).type, "message");
  // The arguments of a streamed call add up.
  let text = "";
  const stream = await client.responses.create({model: MODEL, input, tools, stream: true,
    max_output_tokens: 200, tool_choice: {type: "function", name: "find"},
    parallel_tool_calls: false});
  for await (const event of stream) {
    if (event.type === "response.function_call_arguments.delta") text += event.delta;
    if (event.type === "response.function_call_arguments.done") {
      assert.equal(event.arguments, text);
    }
  }
  assert.ok(["cat", "dog"].includes(JSON.parse(text).what));
});

test("openai: an aborted response ends its work", async () => {
  const stream = await client.responses.create({model: MODEL, input: "Go on.", stream: true,
    ignore_eos: true});
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") stream.controller.abort();
  }
  await untilIdle();
});

// ---- ai: chats by its OpenAI-compatible provider

test("ai: a text and its stream", async () => {
  const ask = {model: compatible(MODEL), prompt: "Tell me about a cat.", maxOutputTokens: 20,
    temperature: 0};
  const whole = await ai.generateText(ask);
  let text = "";
  const stream = ai.streamText(ask);
  for await (const part of stream.textStream) text += part;
  assert.ok(whole.text.length > 0);
  assert.equal(text, whole.text);
  assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
});

test("ai: structured output by zod", async () => {
  const {output} = await ai.generateText({model: compatible(MODEL), prompt: "Who?",
    maxOutputTokens: 100, output: ai.Output.object({schema: Mood})});
  Mood.parse(output);
});

const findTool = (calls) => ai.tool({description: FIND.description,
  inputSchema: z.object({what: z.enum(["cat", "dog"])}).strict(),
  execute: async ({what}) => { calls.push(what); return "Under the bed."; }});

test("ai: a loop of tools", async () => {
  const calls = [];
  const result = await ai.generateText({model: compatible(MODEL), prompt: "Look!",
    maxOutputTokens: 200, tools: {find: findTool(calls)}, toolChoice: "required",
    providerOptions: {arenite: {parallel_tool_calls: false}}, stopWhen: ai.isStepCount(2)});
  assert.equal(result.steps.length, 2);
  assert.ok(calls.length === 2 && calls.every((what) => ["cat", "dog"].includes(what)), calls);
});

test("ai: an aborted stream ends its work", async () => {
  const controller = new AbortController();
  const stream = ai.streamText({model: compatible(MODEL), prompt: "Go on.",
    providerOptions: {arenite: {ignore_eos: true}}, abortSignal: controller.signal,
    onError: () => {}});
  for await (const part of stream.fullStream) {
    if (part.type === "text-delta") controller.abort();
  }
  await untilIdle();
});

test("ai: embeddings", async () => {
  const {embeddings} = await ai.embedMany({model: compatible.embeddingModel(EMBEDDER),
    values: ["A cat sat.", "A dog ran."]});
  assert.equal(embeddings.length, 2);
  assert.ok(ai.cosineSimilarity(embeddings[0], embeddings[0]) > 0.999);
});

// ---- ai: responses by its OpenAI provider

test("ai: a response, its stream, zod and tools", async () => {
  const model = responses.responses(MODEL);
  const ask = {model, prompt: "Tell me about a cat.", maxOutputTokens: 20, temperature: 0};
  const whole = await ai.generateText(ask);
  let text = "";
  for await (const part of ai.streamText(ask).textStream) text += part;
  assert.ok(whole.text.length > 0);
  assert.equal(text, whole.text);
  const {output} = await ai.generateText({model, prompt: "Who?", maxOutputTokens: 100,
    output: ai.Output.object({schema: Mood})});
  Mood.parse(output);
  const calls = [];
  const result = await ai.generateText({model, prompt: "Look!", maxOutputTokens: 200,
    tools: {find: findTool(calls)}, toolChoice: "required",
    providerOptions: {openai: {parallelToolCalls: false, store: false}},
    stopWhen: ai.isStepCount(2)});
  assert.equal(result.steps.length, 2);
  assert.equal(calls.length, 2);
});
