from survey.models.administration import (
    Administration,
    Denominator,
    Identity,
    Respondent,
    Role,
    Wave,
)
from survey.models.backup_run import BackupRun
from survey.models.bank_question import BankQuestion, BankQuestionUse
from survey.models.card_set import CardSet
from survey.models.certificate import DestructionCertificate
from survey.models.comment import DraftComment
from survey.models.consent import Consent
from survey.models.counted_group import CountedGroup
from survey.models.day_off import DayOff
from survey.models.device_login import DeviceLogin
from survey.models.draft import DraftChange, DraftRow, DraftSheet
from survey.models.email_schedule import (
    EmailDelivery,
    EmailSchedule,
    EmailStep,
    EmailTemplate,
    SuppressedAddress,
)
from survey.models.erasure import ErasedId, ErasedRecord, Erasure
from survey.models.instrument import (
    Block,
    Item,
    Option,
    OptionSet,
    Page,
    PublishedSurvey,
    Retirement,
    Survey,
    SurveyMeasures,
    SurveyUpload,
)
from survey.models.job import Job
from survey.models.listed_id import ListedId
from survey.models.message_platform import MessagePlatform, MessagePlatformKey
from survey.models.open_code import (
    OpenCode,
    OpenCodeBatch,
    OpenCodeFile,
    OpenCodeSeat,
    OpenDecline,
)
from survey.models.opt_out import OptOut
from survey.models.person_file import PersonFile
from survey.models.place_merge import PairChoice, PlaceMerge
from survey.models.record_join import RecordJoin
from survey.models.response import Response
from survey.models.retention import DataKind, Destruction, LegalHold, Retention
from survey.models.roster import (
    RosterLayoutChoice,
    RosterRejection,
    RosterSchool,
    RosterUpload,
)
from survey.models.roster_feed import FeedScan, FeedStage, RosterFeed
from survey.models.roster_missing import RosterMissing
from survey.models.roster_undo import RosterChange, RosterUndo
from survey.models.school_count import SchoolCount
from survey.models.school_import import SchoolImport
from survey.models.survey_day import SurveyDay

__all__ = [
    "DayOff",
    "DeviceLogin",
    "DraftChange",
    "DraftComment",
    "DraftRow",
    "DraftSheet",
    "Administration",
    "BackupRun",
    "BankQuestion",
    "BankQuestionUse",
    "Block",
    "CardSet",
    "Consent",
    "CountedGroup",
    "EmailDelivery",
    "EmailSchedule",
    "EmailStep",
    "EmailTemplate",
    "DataKind",
    "Denominator",
    "Destruction",
    "DestructionCertificate",
    "ErasedId",
    "ErasedRecord",
    "Erasure",
    "FeedScan",
    "FeedStage",
    "Identity",
    "Item",
    "Job",
    "LegalHold",
    "ListedId",
    "MessagePlatform",
    "MessagePlatformKey",
    "OpenCode",
    "OpenCodeBatch",
    "OpenCodeFile",
    "OpenCodeSeat",
    "OpenDecline",
    "OptOut",
    "Option",
    "OptionSet",
    "Page",
    "PairChoice",
    "PersonFile",
    "PlaceMerge",
    "PublishedSurvey",
    "RecordJoin",
    "Respondent",
    "Response",
    "Retention",
    "Retirement",
    "Role",
    "RosterLayoutChoice",
    "RosterFeed",
    "RosterChange",
    "RosterMissing",
    "RosterRejection",
    "RosterSchool",
    "RosterUndo",
    "RosterUpload",
    "SchoolCount",
    "SchoolImport",
    "SuppressedAddress",
    "Survey",
    "SurveyDay",
    "SurveyMeasures",
    "SurveyUpload",
    "Wave",
]
