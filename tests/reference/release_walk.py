"""The critical path's walk, plainly: for every piece everything is looked at again."""

from peakline.graph.releases import Release


class PlainWalk:
    """Takes the times from ``found`` (a `peakline.graph.releases.Releases`), nothing else."""

    def __init__(self, runs, graph, result):
        self.graph, self.at = graph, result
        self.label = runs.names("label").to_list()
        self.order = sorted(range(runs.rows), key=lambda run: (result.done[run], result.start[run]))
        self.seen = set()

    def chain(self):
        at = self.at
        last = max(self.order, key=lambda run: (at.end[run], at.start[run], -run))
        result, chain = Release(last, "start", ""), []
        while result is not None:
            self.seen.add(result.run)
            chain.append(result)
            result = self.before(result.run)
        return chain

    def before(self, run):
        at = self.at
        if at.kind[run] == "rpc":
            tensor = self.label[run].partition(" from ")[0]
            return self.latest(self.graph.sent(tensor), at.end[run], run)
        if at.kind[run] != "executor":
            return self.launch(run)
        waits = self.graph.before((at.device[run], at.name[run]), self.label[run])
        return self.latest(waits, at.ready[run], run) or self.latest(waits, at.start[run], run)

    def latest(self, waits, limit, run):
        best, looked_at = None, set()
        stack = [(wait.node, wait.why, wait.tensor) for wait in waits]
        while stack:
            node, why, tensor = stack.pop()
            if node in looked_at:
                continue
            looked_at.add(node)
            runs = self.runs_of(*node)
            if not runs:
                for further in self.graph.before(node, None):
                    if further.why != "source":
                        moved = "transfer" if further.why == "transfer" else why
                        stack.append((further.node, moved, further.tensor or tensor))
                continue
            one = self.last_by(runs, limit, run)
            if one is not None and (best is None or self.at.done[one] > self.at.done[best.run]):
                best = Release(one, why, tensor)
        if best is not None and best.tensor and self.at.kind[run] != "rpc":
            return self.call(best, limit, run) or best
        return best

    def runs_of(self, device, name):
        at = self.at
        return [
            run
            for run in self.order
            if at.kind[run] == "executor"
            and at.name[run] == name
            and device in {"", at.device[run]}
        ]

    def last_by(self, runs, limit, before):
        at = self.at
        early = at.kind[before] == "rpc"
        for run in reversed(runs):
            if at.done[run] > limit or run in self.seen:
                continue
            if early or at.start[run] <= at.start[before]:
                return run
        return None

    def call(self, release, limit, run):
        at = self.at
        calls = [
            call
            for call in self.order
            if at.kind[call] == "rpc"
            and at.device[call] == at.device[run]
            and self.label[call].partition(" from ")[0] == release.tensor
            and at.done[call] <= limit
        ]
        if not calls or calls[-1] in self.seen:
            return None
        return Release(calls[-1], release.why, release.tensor)

    def launch(self, kernel):
        at = self.at
        start = at.start[kernel]
        launches = [
            run for run in self.runs_of("", at.name[kernel].partition(":")[0])
            if at.start[run] <= start
        ]  # fmt: skip
        launch = max(launches, key=lambda run: at.start[run], default=None)
        stream = [
            run
            for run in self.order
            if at.kind[run] == "stream" and at.device[run] == at.device[kernel]
        ]
        before = self.last_by(stream, start, kernel)
        if before is not None and (launch is None or at.end[before] > at.start[launch]):
            return Release(before, "stream", "")
        return None if launch is None or launch in self.seen else Release(launch, "launch", "")
