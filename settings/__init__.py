from settings.celery import app as celery_app

# Imported with the settings, so that tasks are sent by this application.
__all__ = ["celery_app"]
