"""Send the requests of an access log again, by made-up people.

The log names no client, so each request is given to a person who can have sent
it: a save of page 4 to the one who has waited longest after page 3. Where there
is none, somebody was there before the log begins.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from provisioning.load.access_log import LoggedRequest, Step
from provisioning.load.crowd import DRAIN
from provisioning.load.engine import TIMEOUT, Engine, Exchange, clock
from provisioning.load.respondent import Request, Respondent

# Where a person is: so many pages were saved, or one of these.
OUTSIDE, ASKED, ENTERED, DISPLAYED = -3, -2, -1, 0
REVIEWED, FINISHED, GONE = 101, 102, 103


@dataclass(slots=True, eq=False)
class Person:
    # Where this person is when the log begins.
    before: int
    # Requests that are due, with their moments; one is sent at a time.
    due: deque[tuple[float, LoggedRequest]] = field(default_factory=deque)
    is_busy: bool = False
    has_failed: bool = False
    has_finished: bool = False


def assign_people(
    requests: Iterable[LoggedRequest],
) -> tuple[list[Person], list[Person | None]]:
    """Return the people, and who sends each request.

    Content is the same for everybody: nobody in particular requests it.
    """
    people: list[Person] = []
    senders: list[Person | None] = []
    waiting: defaultdict[int, deque[Person]] = defaultdict(deque)
    for request in requests:
        if request.step is Step.CONTENT:
            senders.append(None)
            continue
        wanted, before, after = _stages(request, waiting)
        stage = next((stage for stage in wanted if waiting[stage]), None)
        if stage is None:
            person = Person(before)
            people.append(person)
        else:
            person = waiting[stage].popleft()
            if request.step is Step.REVIEW and stage == FINISHED:
                after = GONE
            elif request.step is Step.DISPLAY:
                after = max(after, stage)
        waiting[after].append(person)
        senders.append(person)
    return people, senders


def _stages(
    request: LoggedRequest, waiting: dict[int, deque[Person]]
) -> tuple[Sequence[int], int, int]:
    """Return where its sender may be, where a new one is, and where both are then."""
    page = request.page
    pages = sorted(
        (stage for stage in waiting if DISPLAYED <= stage < REVIEWED), reverse=True
    )
    match request.step:
        case Step.LOGIN:
            return (ASKED,), ASKED, ENTERED
        case Step.DISPLAY:
            # After a login, or a reload.
            return (ENTERED, *pages), ENTERED, DISPLAYED
        case Step.SAVE:
            # The same page again, or after pages that had no relevant question.
            wanted = (page - 1, page, page - 2, page - 3)
            return [stage for stage in wanted if stage in pages], page - 1, page
        case Step.REVIEW:
            return (FINISHED, *pages, REVIEWED), DISPLAYED, REVIEWED
        case Step.FINISH:
            return (REVIEWED,), REVIEWED, FINISHED
    return (), OUTSIDE, ASKED


def preparation(person: Person, respondent: Respondent) -> Iterator[Request]:
    """Yield the requests that bring a person to where the log begins."""
    if person.before >= ASKED:
        yield respondent.login_page()
    if person.before >= ENTERED:
        yield respondent.login()
    if person.before >= DISPLAYED:
        yield respondent.display()
    if person.before == REVIEWED:
        yield respondent.review()


@dataclass(frozen=True, slots=True)
class Sample:
    view: str
    page: int
    # From the moment it was due.
    seconds: float
    failure: str


class Replay:
    """Send logged requests when they are due, whatever the replies do.

    A person has one request at a time, and stops at the first error.
    """

    def __init__(
        self,
        engine: Engine,
        requests: Sequence[LoggedRequest],
        senders: Sequence[Person | None],
        respondents: Mapping[Person | None, Respondent],
        *,
        speed: float,
    ) -> None:
        self.engine = engine
        self.parts = list(zip(requests, senders, strict=True))
        self.respondents = respondents
        first, begin = requests[0].moment, clock()
        self.due = [begin + (each.moment - first) / speed for each in requests]
        self.samples: list[Sample] = []
        # Requests of people who had stopped.
        self.not_sent = 0

    def run(self) -> None:
        """Return after the last reply, or the last time-out."""

        def is_over() -> bool:
            return len(self.samples) + self.not_sent == len(self.parts)

        self._plan(0)
        self.engine.run(until=self.due[-1] + TIMEOUT + DRAIN, idle=is_over)

    def _plan(self, place: int) -> None:
        """Set a timer for one request, which sets that of the next."""

        def act() -> None:
            if place + 1 < len(self.parts):
                self._plan(place + 1)
            request, person = self.parts[place]
            if person is None:
                self._send(None, self.due[place], request)
            else:
                person.due.append((self.due[place], request))
                self._send_next(person)

        self.engine.at(self.due[place], act)

    def _send_next(self, person: Person) -> None:
        if person.has_failed:
            self.not_sent += len(person.due)
            person.due.clear()
        elif person.due and not person.is_busy:
            person.is_busy = True
            self._send(person, *person.due.popleft())

    def _send(self, person: Person | None, due: float, logged: LoggedRequest) -> None:
        respondent = self.respondents[person]
        if person is not None and person.has_finished:
            request = respondent.thanks()
        else:
            request = _request_of(respondent, logged)

        def receive(exchange: Exchange) -> None:
            failure = request.check(exchange)
            seconds = exchange.answered - due
            self.samples.append(Sample(request.kind, logged.page, seconds, failure))
            if person is not None:
                person.is_busy, person.has_failed = False, bool(failure)
                person.has_finished |= logged.step is Step.FINISH
                self._send_next(person)

        self.engine.ask(request.data, receive, scheduled=due)


def _request_of(respondent: Respondent, logged: LoggedRequest) -> Request:
    if logged.step is Step.CONTENT:
        return respondent.content(logged.page)
    if logged.step is Step.SAVE:
        answers = respondent.survey.draw_answers(logged.page, respondent.chance)
        return respondent.save(logged.page, answers)
    # The others are named after what a respondent requests.
    request: Request = getattr(respondent, logged.step.name.lower())()
    return request
