/**
 * Several hosts of a session as one timeline: every answer is that of each host, moved to one clock, and
 * numbered on. Lines, names and counters of a host follow those of the host before; an event's number
 * has the host's place above its own 32 bits.
 */

import { json, sessionPath } from "../../core/api.js";
import { askHost } from "./ask.js";
import { formatRanges, parseRanges } from "./ranges.js";
import { counted, time, worded } from "../../core/format.js";
import { WORDING } from "../../core/wording.js";

const EVENT_BITS = 2 ** 32;
export const MOST_HOSTS = 16;
/** Times that went through both clocks are so near to what they were. */
const NEAR_PS = 1000;
/** How a host's clock was related to the others'. @type {Record<string, string>} */
const SOURCES = WORDING.clocks.sources;

/** @typedef {import("./ask.js").Query} Query */
/** @typedef {Record<string, any>} Columns */
/** A clock: `t` of a host is `t + offset_ps - drift * (t - at_ps)` on the axis of all. @typedef {{offset_ps: number, at_ps: number, drift: number, source: string}} Clock */
/** @typedef {{host: string, title: string, place: number, clock: Clock, lines: number, line: number, names: number, name: number, counters: number, counter: number}} Part */

/** Hosts as an address has them. @param {string[]} hosts */
export function formatHosts(hosts) {
  return hosts.map((host) => host.replace(/[%,]/g, encodeURIComponent)).join(",");
}

/** @param {string} text @param {string[]} known */
export function parseHosts(text, known) {
  if (text === "all") return known;
  const named = new Set(text.split(",").map((host) => host.replace(/%25|%2C/gi, decodeURIComponent)));
  return known.filter((host) => named.has(host));
}

/** A moment of a host on the axis of all. @param {Clock} clock @param {number} time */
export function onAxis({ offset_ps: offset, at_ps: at, drift }, time) {
  return Math.round(drift ? time + offset - drift * (time - at) : time + offset);
}

/** A moment of the axis on a host's own clock. @param {Clock} clock @param {number} time */
export function onHost({ offset_ps: offset, at_ps: at, drift }, time) {
  return Math.round(drift ? (time - offset - drift * at) / (1 - drift) : time - offset);
}

export class Stack {
  /** @type {Part[]} */
  parts = [];
  #first = 0;
  #last = 0;

  /**
   * @param {import("../../shell/context.js").Context} context
   * @param {string[]} hosts
   * @param {number} all how many the session has
   */
  constructor(context, hosts, all) {
    this.context = context;
    this.left = Math.max(0, hosts.length - MOST_HOSTS);
    this.hosts = [...hosts];
    this.isAll = hosts.length === all;
    /** How the clocks are related, in a sentence. */
    this.says = "";
  }

  /**
   * By the collectives that all ranks of the job have in common; where there are none, by what its steps say.
   * @returns {Promise<{clocks: Map<string, Clock>, titles: Map<string, string>}>}
   */
  async #clocks() {
    const { signal, session, root } = this.context;
    /** @param {string} name @param {Query} query */
    const ask = async (name, query) =>
      (await json(sessionPath(session, "tools", name), { query: { root, ...query }, signal })).data;
    const { job, ranks } = await ask("job", {});
    const titles = new Map(ranks.map((/** @type {any} */ rank) =>
      [rank.host, rank.rank === null ? rank.host : `rank ${rank.rank}`]));
    const { aligned_by: source, uncertainty_ps: unsure, ranks: own, machines } = job.clocks;
    /** In the order of ranks, which is not that of names. @type {string[]} */
    const order = own.map((/** @type {any} */ rank) => rank.host);
    const place = (/** @type {string} */ host) => (order.indexOf(host) + order.length + 1) % (order.length + 1);
    this.hosts = this.hosts.sort((one, other) => place(one) - place(other)).slice(0, MOST_HOSTS);
    if (source !== "none") {
      const { clock, collectives, alone } = WORDING.clocks.job;
      this.says = worded(source === "clock" ? clock : collectives, { time: time(unsure) });
      // One is what the others are compared with.
      const left = machines.filter((/** @type {any} */ one) => !one.matches).length - 1
        + this.hosts.filter((host) => !order.includes(host)).length;
      if (left > 0) this.says += worded(alone, { clocks: counted(left, "clock") });
      return { titles, clocks: new Map(own.map((/** @type {any} */ rank) => [rank.host, { ...rank, source }])) };
    }
    const { clocks } = await ask("step_breakdown", { limit: 0 });
    return { titles, clocks: new Map(clocks.hosts.map((/** @type {any} */ one) =>
      [one.host, { ...one, at_ps: 0, drift: 0 }])) };
  }

  /** Relate the clocks, and read the lanes of every host. @returns {Promise<Columns>} */
  async open() {
    const { signal } = this.context;
    const { clocks, titles } = await this.#clocks();
    const answers = await Promise.all(this.hosts.map((host) => askHost(this.context, { view: "lanes", host }, signal)));
    let line = 0, name = 0;
    this.parts = answers.map((lanes, place) => {
      const host = this.hosts[place] ?? "";
      const clock = clocks.get(host) ?? { offset_ps: 0, at_ps: 0, drift: 0, source: "none" };
      const part = { host, title: titles.get(host) ?? host, place, clock, lines: lanes["line_name"].length, line, names: Number(lanes["names_total"]), name, counters: 0, counter: 0 };
      line += part.lines;
      name += part.names;
      return part;
    });
    const who = this.isAll && !this.left ? WORDING.clocks.all : counted(this.parts.length, "host");
    const how = this.says
      || this.parts.map(({ title, clock: { source } }) => `${title} ${SOURCES[source] ?? source}`).join("; ");
    this.says = worded(this.left ? WORDING.clocks.some_hosts : WORDING.clocks.hosts, { who, how, left: this.left });
    return this.#lanes(answers);
  }

  /**
   * Where an event is: its host, and how far that host's clock was moved.
   * @param {number} event
   */
  of(event) {
    return /** @type {Part} */ (this.parts[Math.floor(event / EVENT_BITS)] ?? this.parts[0]);
  }

  /**
   * The answer of all hosts that a question is about.
   * @param {Query & {view: string}} query
   * @param {AbortSignal} signal
   * @returns {Promise<Columns>}
   */
  async ask(query, signal) {
    if (query.view === "lanes") return this.#names(Number(query["names_from"] ?? 0), signal);
    const isOne = (query.view === "event" || query.view === "arrows") && query["event"] !== undefined;
    const parts = isOne ? [this.of(Number(query["event"]))] : this.#named(query) ?? this.parts;
    const requested = parts.flatMap((part) => {
      const own = this.#of(part, query);
      return own ? [{ part, answer: askHost(this.context, own, signal) }] : [];
    });
    const answers = await Promise.all(requested.map(async ({ part, answer }) => ({ part, columns: await answer })));
    for (const { part, columns } of answers) this.#move(part, columns);
    const first = answers[0]?.columns ?? {};
    if (isOne && query.view === "arrows") {
      const meeting = await this.#meeting(Number(query["event"]), signal);
      for (const key of /** @type {const} */ (["kind", "from", "to"])) {
        first[key] = [...first[key], ...meeting.map((arrow) => arrow[key])];
      }
      first["total"] = Math.max(first["total"], 0) + meeting.length;
    }
    if (isOne || answers.length < 2 && query.view !== "counter") return first;
    const all = answers.map(({ columns }) => columns);
    switch (query.view) {
      case "tile": return tiles(all);
      case "search": return searches(all, query);
      case "find": return all.find((one) => one["found"]) ?? first;
      case "area": return areas(all);
      case "counter": return this.#counters(answers, query);
      case "steps": return steps(all);
      default: return joined(all, ["kind", "from", "to"], ["total"]);
    }
  }

  /**
   * Where an event is a collective, arrows from whom was waited for to who waited, among these hosts.
   * @param {number} event
   * @param {AbortSignal} signal
   * @returns {Promise<import("./arrows.js").Arrow[]>}
   */
  async #meeting(event, signal) {
    const { session, root } = this.context, own = this.of(event);
    const { details } = await askHost(this.context,
      { view: "event", host: own.host, event: event % EVENT_BITS, with_step: false }, signal);
    if (details?.activity !== "communication") return [];
    const at = onAxis(own.clock, details.start_ps);
    /** @param {Query} query @returns {Promise<any[]>} */
    const ask = async (query) => (await json(sessionPath(session, "tools", "collectives"),
      { query: { root, ...query }, signal })).data.rows;
    const around = await ask({ from_ps: at, to_ps: at + NEAR_PS,
      rank: /^rank (\d+)$/.exec(own.title)?.[1] ?? null });
    const row = around.find((one) => one.host === own.host && Math.abs(one.arrive_ps - at) <= NEAR_PS);
    if (!row || row.wait_ps === null) return [];
    const rows = await ask({ collective: row.collective });
    const source = rows.find(({ kind }) => kind === "send")
      ?? rows.reduce((late, one) => one.arrive_ps > late.arrive_ps ? one : late);
    /** @param {any} one */
    const placed = async (one) => {
      const part = this.parts.find(({ host }) => host === one.host);
      if (!part) return null;
      const columns = await askHost(this.context, { view: "find", host: part.host, search: details.name,
        at_ps: onHost(part.clock, one.arrive_ps) + NEAR_PS }, signal);
      this.#move(part, columns);
      const { found: result } = columns;
      return result && { ...result, name: `${part.title}: ${result.name}` };
    };
    const from = await placed(source);
    if (!from) return [];
    const targets = await Promise.all(rows.filter((one) => one !== source).map(placed));
    return targets.flatMap((to) => to && to.event !== from.event ? [{ kind: "collective", from, to }] : []);
  }

  /**
   * The host whose device a question about steps names: `HOST › DEVICE`, or `HOST` for its own.
   * @param {Query & {view: string}} query
   */
  #named({ view, device }) {
    if (view !== "steps" || !device) return null;
    const part = this.parts.find(({ host }) => device === host || String(device).startsWith(`${host} › `));
    return part ? [part] : null;
  }

  /**
   * What a host is asked; null where the question is about none of its lines.
   * @param {Part} part
   * @param {Query & {view: string}} query
   * @returns {Query & {view: string} | null}
   */
  #of(part, query) {
    /** @type {Query & {view: string}} */
    const own = { ...query, host: part.host };
    for (const key of ["start_ps", "end_ps", "at_ps", "until_ps"]) {
      if (typeof own[key] === "number") own[key] = onHost(part.clock, Number(own[key]));
    }
    if (query.view === "steps" && this.#named(query)) {
      own["device"] = String(query["device"]).slice(part.host.length + 3) || null;
    }
    // A first tile of everything: of all hosts from the first moment to the last.
    if (query.view === "tile" && (own["start_ps"] ?? null) === null) {
      own["start_ps"] = onHost(part.clock, this.#first);
      own["end_ps"] = onHost(part.clock, this.#last);
    }
    if (typeof own["event"] === "number") {
      if (this.of(own["event"]) === part) own["event"] %= EVENT_BITS;
      // Another host's event: its neighbours here are those of its time.
      else delete own["event"];
    }
    if (own["lines"] !== null && own["lines"] !== undefined) {
      const isCounter = query.view === "counter";
      const [base, count] = isCounter ? [part.counter, part.counters] : [part.line, part.lines];
      const lines = parseRanges(String(own["lines"]), base + count).filter((line) => line >= base);
      if (!lines.length) return null;
      own["lines"] = formatRanges(lines.map((line) => line - base));
    }
    return own;
  }

  /**
   * An answer of one host, on the clock and with the numbers of all.
   * @param {Part} part
   * @param {Columns} columns
   */
  #move(part, columns) {
    const { clock, line, name, place } = part;
    for (const key of ["start_ps", "end_ps"]) if (key in columns) columns[key] = onAxis(clock, columns[key]);
    // Counted from the answer's begin. How long something took is by its own clock, as everywhere.
    if (clock.drift && columns["begin_ps"]) {
      columns["begin_ps"] = Float64Array.from(columns["begin_ps"], (own) => own * (1 - clock.drift));
    }
    const event = (/** @type {number} */ own) => own + place * EVENT_BITS;
    if (columns["event"] instanceof Int32Array && place) columns["event"] = Float64Array.from(columns["event"], event);
    if (columns["longest"]) columns["longest"] = Float64Array.from(columns["longest"], event);
    for (const [key, base] of /** @type {[string, number][]} */ ([["track_line", line]])) {
      if (columns[key] && base) columns[key] = columns[key].map((/** @type {number} */ own) => own + base);
    }
    if (columns["name"] instanceof Int32Array && name) columns["name"] = columns["name"].map((own) => own + name);
    if (columns["device_name"]) {
      moveSteps(part, columns);
      return;
    }
    /** @param {any} brief */
    const moved = (brief) => {
      if (!brief) return brief;
      brief.event = event(brief.event);
      brief.line += line;
      brief.start_ps = onAxis(clock, brief.start_ps);
      if ("end_ps" in brief) brief.end_ps = onAxis(clock, brief.end_ps);
      return brief;
    };
    for (const key of ["first", "last", "previous", "next", "found"]) moved(columns[key]);
    for (const key of ["from", "to"]) if (Array.isArray(columns[key])) columns[key].forEach(moved);
    const details = columns["details"];
    if (!details) return;
    moved(details);
    for (const other of [details.previous, details.next, ...details.parents]) moved(other);
    details.plane = `${part.title} › ${details.plane}`;
  }

  /** @param {Columns[]} answers */
  #lanes(answers) {
    /** @type {Columns} */
    const all = { ...answers[0], plane_name: [], plane_kind: [], line_plane: [], line_name: [],
      line_native_id: [], line_events: [], line_rows: [], plane_part: [], events: 0, untimed: 0, names_total: 0, names_parts: [],
      parts: this.parts.map(({ host, title }) => ({ host, title })) };
    this.#first = Infinity;
    this.#last = -Infinity;
    answers.forEach((lanes, place) => {
      const part = /** @type {Part} */ (this.parts[place]);
      const planes = all["plane_name"].length;
      for (const plane of lanes["plane_name"]) {
        all["plane_name"].push(`${part.title} › ${plane}`);
        all["plane_part"].push(place);
      }
      all["plane_kind"].push(...lanes["plane_kind"]);
      for (const plane of lanes["line_plane"]) all["line_plane"].push(plane + planes);
      for (const key of ["line_name", "line_native_id", "line_events", "line_rows"]) {
        for (const value of lanes[key]) all[key].push(value);
      }
      for (const key of ["events", "untimed", "names_total"]) all[key] += lanes[key];
      all["names_parts"].push({ from: part.name, names: lanes["names"] });
      if (!lanes["events"]) return;
      this.#first = Math.min(this.#first, onAxis(part.clock, lanes["start_ps"]));
      this.#last = Math.max(this.#last, onAxis(part.clock, lanes["end_ps"]));
    });
    all["start_ps"] = this.#first;
    all["end_ps"] = this.#last;
    return all;
  }

  /**
   * More names, of the host whose they are.
   * @param {number} code
   * @param {AbortSignal} signal
   */
  async #names(code, signal) {
    const part = this.parts.find(({ name, names }) => code >= name && code < name + names) ?? this.parts[0];
    if (!part) return { names: [] };
    return askHost(this.context, { view: "lanes", host: part.host, names_from: code - part.name }, signal);
  }

  /**
   * @param {{part: Part, columns: Columns}[]} answers
   * @param {Query} query
   */
  #counters(answers, query) {
    if (query["lines"] === undefined) {
      let counter = 0;
      for (const { part, columns } of answers) {
        part.counter = counter;
        part.counters = columns["counter_name"].length;
        counter += part.counters;
      }
    }
    /** @type {Columns} */
    const all = { counter_group: [], counter_name: [], counter_values: [], counter: [], low: [], high: [], last: [] };
    for (const { part, columns } of answers) {
      all["counter_group"].push(...columns["counter_group"]);
      all["counter_values"].push(...columns["counter_values"]);
      for (const name of columns["counter_name"]) all["counter_name"].push(`${part.title} ${name}`);
      for (const own of columns["counter"]) all["counter"].push(own + part.counter);
      for (const key of ["low", "high", "last"]) for (const value of columns[key]) all[key].push(value);
    }
    return all;
  }
}

/**
 * @param {Columns[]} all
 * @param {string[]} lists to be joined
 * @param {string[]} sums to be added
 */
function joined(all, lists, sums) {
  /** @type {Columns} */
  const made = { ...all[0] };
  for (const key of lists) made[key] = all.flatMap((one) => Array.from(one[key]));
  for (const key of sums) made[key] = all.reduce((sum, one) => sum + one[key], 0);
  return made;
}

/** Tiles of the same viewport and resolution, one after the other. @param {Columns[]} all */
function tiles(all) {
  const made = joined(all, ["track_line", "track_row", "begin_ps", "duration_ps", "busy_ps", "count", "name",
    "event", "activity"].filter((key) => key in (all[0] ?? {})), ["events"]);
  let items = 0;
  made["track_first"] = [];
  for (const one of all) {
    for (const first of Array.from(one["track_first"]).slice(0, -1)) made["track_first"].push(first + items);
    items += one["begin_ps"].length;
  }
  made["track_first"].push(items);
  return made;
}

/**
 * The steps of a host on the clock of all, each device called with its host.
 * @param {Part} part
 * @param {Columns} columns
 */
function moveSteps({ host, clock }, columns) {
  const named = (/** @type {string | null} */ device) => [host, device].filter(Boolean).join(" › ");
  columns["device_name"] = columns["device_name"].map(named);
  const { found: result } = columns;
  for (const step of [result, result?.previous, result?.next]) {
    if (!step) continue;
    step.device = named(step.device);
    step.start_ps = onAxis(clock, step.start_ps);
    step.end_ps = onAxis(clock, step.end_ps);
  }
}

/** Steps of the same stretch: devices one host after the other. @param {Columns[]} all */
function steps(all) {
  const made = joined(all, ["device_name", "device_steps", "place", "begin_ps", "duration_ps", "longest_ps", "count",
    "step_id", "step_name", "is_cut_off"], ["total"]);
  made["device"] = [];
  let devices = 0;
  for (const one of all) {
    for (const device of one["device"]) made["device"].push(device + devices);
    devices += one["device_name"].length;
  }
  made["found"] = all.map((one) => one["found"]).filter(Boolean)
    .sort((one, other) => one.start_ps - other.start_ps)[0] ?? null;
  return made;
}

/**
 * @param {Columns[]} all
 * @param {Query} query
 */
function searches(all, query) {
  const made = joined(all, ["name", "count"], ["total", "names_total"]);
  const order = made["name"].map((/** @type {number} */ _, /** @type {number} */ place) => place)
    .sort((/** @type {number} */ one, /** @type {number} */ other) => made["count"][other] - made["count"][one]);
  for (const key of ["name", "count"]) made[key] = order.map((/** @type {number} */ place) => made[key][place]);
  made["bins"] = Array.from(all[0]?.["bins"] ?? [], (_, bin) => all.reduce((sum, one) => sum + one["bins"][bin], 0));
  const pick = (/** @type {string} */ key, /** @type {1 | -1} */ way) => all.map((one) => one[key]).filter(Boolean)
    .sort((one, other) => way * (one.start_ps - other.start_ps) || way * (one.event - other.event))[0] ?? null;
  made["first"] = pick("first", 1);
  made["last"] = pick("last", -1);
  made["next"] = pick("next", 1);
  made["previous"] = pick("previous", -1);
  // Of an event of one host, those of the others were counted from the viewport's begin.
  if (query["event"] !== undefined) {
    made["next"] = all.find((one) => one["next"])?.["next"] ?? null;
    made["previous"] = all.find((one) => one["previous"])?.["previous"] ?? null;
  }
  return made;
}

/** Areas of several hosts: names added up, flame graphs side by side. @param {Columns[]} all */
function areas(all) {
  const made = joined(all, ["frame_name", "frame_count", "frame_total_ps", "frame_self_ps"],
    ["events", "lines", "self_total_ps", "frames_hidden"]);
  made["frame_parent"] = [];
  /** @type {Map<string, {name: string, count: number, total_ps: number, self_ps: number, longest: number, most: number}>} */
  const names = new Map();
  for (const one of all) {
    const base = made["frame_parent"].length;
    for (const parent of one["frame_parent"]) made["frame_parent"].push(parent < 0 ? -1 : parent + base);
    one["name"].forEach((/** @type {string} */ name, /** @type {number} */ place) => {
      const own = { name, count: one["count"][place], total_ps: Number(one["total_ps"][place]),
        self_ps: Number(one["self_ps"][place]), longest: one["longest"][place], most: Number(one["total_ps"][place]) };
      const known = names.get(name);
      if (!known) names.set(name, own);
      else {
        known.count += own.count;
        known.total_ps += own.total_ps;
        known.self_ps += own.self_ps;
      }
    });
  }
  const rows = [...names.values()].sort((one, other) => other.self_ps - one.self_ps);
  for (const key of /** @type {const} */ (["name", "count", "total_ps", "self_ps", "longest"])) {
    made[key] = rows.map((row) => row[key]);
  }
  made["names_total"] = Math.max(rows.length, ...all.map((one) => one["names_total"]));
  return made;
}
